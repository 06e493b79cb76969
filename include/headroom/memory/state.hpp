// Weights, gradients and optimizer state of a rank: by default those of mixed-precision Adam [K22 section 6; Megatron-LM,
// docs/source/api-guide/dist_optimizer: 16 to 18 bytes a parameter, of which 12 can be sharded].
#pragma once

#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/memory/matrices.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Parameters of the whole model as published: the vocabulary unpadded, tied embeddings counted once, without multi-token
// prediction.
double parameter_count(const Transformer& model);

// The same beside those that a token meets: of the experts of a layer, q. Publishers count the word embedding that it is
// looked up in, or leave that out where the output layer has weights of its own.
struct ParameterCounts {
  double all = 0;
  double active = 0;
  double active_without_embedding = 0;
  double predictors = 0;  // of multi-token prediction, which `all` and those that are active leave out
  friend bool operator==(const ParameterCounts&, const ParameterCounts&) = default;
};
ParameterCounts parameter_counts(const Transformer& model);

// Parameters by the ranks over which their gradients are summed.
struct Parameters {
  double dense = 0;
  double expert = 0;
  // Those of them that are factors of products of fewer than 16 bits.
  double narrow_dense = 0;
  double narrow_expert = 0;
  double narrow_output = 0;  // of an output layer, which 16 bits stay of
  // Those that are frozen, and of these the ones of fewer bits (model/adapters.hpp).
  double frozen_dense = 0;
  double frozen_expert = 0;
  double quantized_dense = 0;
  double quantized_expert = 0;
  constexpr Parameters(double outside_experts = 0,  // NOLINT(google-explicit-constructor)
                       double of_experts = 0, double narrow_outside = 0, double narrow_of_experts = 0)
      : dense(outside_experts),
        expert(of_experts),
        narrow_dense(narrow_outside),
        narrow_expert(narrow_of_experts) {}
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

constexpr double total(const Parameters& parameters) { return parameters.dense + parameters.expert; }

// Those that have gradients and are stepped.
constexpr Parameters trained(Parameters parameters) {
  parameters.dense -= parameters.frozen_dense;
  parameters.expert -= parameters.frozen_expert;
  parameters.frozen_dense = parameters.frozen_expert = 0;
  parameters.quantized_dense = parameters.quantized_expert = 0;
  return parameters;
}

// Of one class alone.
constexpr Parameters of_class(Parameters parameters, WeightClass weights) {
  if (weights == WeightClass::dense) {
    parameters.expert = parameters.narrow_expert = parameters.frozen_expert = parameters.quantized_expert = 0;
  } else {
    parameters.dense = parameters.narrow_dense = parameters.frozen_dense = parameters.quantized_dense = 0;
    parameters.narrow_output = 0;
  }
  return parameters;
}

// Of the parts of a model that one tensor-parallel rank holds.
struct ModelParameters {
  std::vector<Parameters> kinds;  // of one layer, or end, in the order of ModelLayers::kinds
  double shared = 0;  // the output layer's weights, where tied embeddings stand on one rank with them
  double copied =
      0;  // the word embedding's, of which multi-token prediction has a copy on a rank without them
  std::vector<MatrixList> matrices;  // of one of each kind, where the optimizer steps matrices
  friend bool operator==(const ModelParameters&, const ModelParameters&) = default;
};

// What holds the head, without the output layer's weights that are the embedding's.
constexpr Parameters without_shared(Parameters held, const ModelParameters& parts) {
  held.dense -= parts.shared;
  if (held.frozen_dense > 0) held.frozen_dense -= parts.shared;
  return held;
}

// Whether a pipeline rank has the copy of the word embedding: it holds the head, which is the last kind, and not both ends.
constexpr bool has_copy(const ModelParameters& parts, const KindCounts& counts, bool both_ends) {
  return parts.copied > 0 && !both_ends && !counts.empty() && counts[counts.size() - 1] > 0;
}

// The same in symbols, for all t that shard alike.
struct KindParameterExprs {
  KindSizes sizes;
  Expr dense;
  Expr expert;
  Expr narrow_dense;
  Expr narrow_expert;
  Expr narrow_output;
  Expr frozen_dense;
  Expr frozen_expert;
  Expr quantized_dense;
  Expr quantized_expert;
};
struct ModelParameterExprs {
  std::vector<KindParameterExprs> kinds;
  std::vector<std::vector<MatrixExpr>> matrices;
  Expr shared;
  Expr copied;
};

ModelParameterExprs model_parameter_exprs(const ModelLayers& layers, const Sharding& sharding,
                                          std::int64_t tensor_parallel,
                                          OptimizerKind optimizer = OptimizerKind::adam);
ModelParameters evaluate(const ModelParameterExprs& exprs, const Bindings& letters);

ModelParameters model_parameters(const Transformer& model, const Strategy& strategy, const Workload& workload,
                                 const Software& software = {});

// Of a pipeline rank whose virtual stages hold so many of each kind, the last of which is the head; `both_ends`: the first and
// the last virtual stage are among them.
constexpr Parameters parameters_of_rank(const ModelParameters& parts, const KindCounts& counts,
                                        bool both_ends) {
  Parameters sum;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum.dense += static_cast<double>(counts[i]) * parts.kinds[i].dense;
    sum.expert += static_cast<double>(counts[i]) * parts.kinds[i].expert;
    sum.narrow_dense += static_cast<double>(counts[i]) * parts.kinds[i].narrow_dense;
    sum.narrow_expert += static_cast<double>(counts[i]) * parts.kinds[i].narrow_expert;
    sum.narrow_output += static_cast<double>(counts[i]) * parts.kinds[i].narrow_output;
    sum.frozen_dense += static_cast<double>(counts[i]) * parts.kinds[i].frozen_dense;
    sum.frozen_expert += static_cast<double>(counts[i]) * parts.kinds[i].frozen_expert;
    sum.quantized_dense += static_cast<double>(counts[i]) * parts.kinds[i].quantized_dense;
    sum.quantized_expert += static_cast<double>(counts[i]) * parts.kinds[i].quantized_expert;
  }
  if (both_ends) return without_shared(sum, parts);
  if (has_copy(parts, counts, both_ends)) {
    sum.dense += parts.copied;
    if (sum.frozen_dense > 0) sum.frozen_dense += parts.copied;
  }
  return sum;
}

// Of the same rank; empty where the optimizer does not step matrices.
MatrixList matrices_of_rank(const ModelParameters& parts, const KindCounts& counts, bool both_ends);

// Parameters of each pipeline rank (of one of its tensor-parallel ranks). Tied embeddings stand on the first and on the
// last rank, each with gradients and optimizer state of its own, unless those are the same rank.
std::vector<Parameters> parameters_by_rank(const Transformer& model, const Strategy& strategy,
                                           const Workload& workload);

// Parameters that the optimizer of a rank steps, of all that it holds: its shard of those that are trained.
double stepped_by_rank(const Parameters& held, const Strategy& strategy);

// Bytes of frozen weights: of 16 bits, or of fewer.
double frozen_bytes(const Parameters& held);

struct ModelState {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;  // master weights and moments
  Bytes on_host;    // that the host's memory holds for the rank, beside all this
  friend bool operator==(const ModelState&, const ModelState&) = default;
};

constexpr Bytes total(const ModelState& state) { return state.weights + state.gradients + state.optimizer; }

// Bytes of a weight of products of fewer than 16 bits, in its type, with its part of a scale.
constexpr double weight_size(Dtype dtype) {
  const BlockScales& scales = row_of(dtype).scales;
  return (bits_of(dtype) + static_cast<double>(scales.bits) / scales.weight_block) / 8;
}

// Bytes that a rank keeps of such a weight: as many copies as products take (hardware/device.hpp), from the first microbatch
// to the last, and the 16 bits that they were cast from, unless weights are kept in the type alone [Transformer Engine,
// module/base.py, get_weight_workspace; Megatron-LM, --fp8-param-gather].
double narrow_weight_size(const Strategy& strategy, int copies);

// Of the copies alone.
double copies_size(const Strategy& strategy, int copies);

// Bytes of it that data-parallel ranks gather after a step. MXFP8 weights travel at 16 bits, in the buffer of the gradients
// [Megatron-LM, --reuse-grad-buf-for-mxfp8-param-ag].
double gathered_narrow_weight_size(const Strategy& strategy);

// Bytes of the gradients of so many parameters.
constexpr Bytes gradient_bytes(double parameters, Dtype dtype) {
  return Bytes(parameters * static_cast<double>(size_of(dtype)));
}

// Of weights that were gathered from their shards; frozen ones of fewer bits are gathered as they are kept.
Bytes gathered_bytes(const Parameters& parameters, const Strategy& strategy);

// Data sharding divides the state of each class over the ranks that hold the same weights: optimizer state, gradients from
// zero2 on, weights with zero3. Weights and gradients that stay whole for an iteration all the same are among them: those of
// pipeline ranks, and gradients that a stack sums before it reduces them. What passes gather and reduce unit by unit is not
// (memory/units.hpp). `copies` of each weight of products of fewer than 16 bits. What Muon keeps of matrices is that of the rank
// that steps the most of them; gradients are there twice where buckets have copies of them; what Adafactor keeps of rows and columns is whole on every rank [PyTorch,
// torch/distributed/tensor/_ops/_tensor_ops.py, new_factory_strategy]. `matrices` are those of the parameters.
ModelState model_state(const Transformer& model, const Strategy& strategy, const Workload& workload,
                       const Parameters& parameters, int copies = 2, const Software& software = {},
                       const MatrixList& matrices = {});

}  // namespace headroom

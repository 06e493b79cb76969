// Weights, gradients and optimizer state of a rank. The defaults are those of mixed-precision Adam [K22
// section 6; Megatron-LM, docs/source/api-guide/dist_optimizer: 16 to 18 bytes a parameter, of which 12 can
// be sharded].
#pragma once

#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/memory/held.hpp"
#include "headroom/memory/matrices.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Returns the parameters of the whole model as published: with the unpadded vocabulary, tied embeddings
// counted once, and no multi-token prediction.
double parameter_count(const Transformer& model);

// Parameters of a model, and those active for a token: q of the experts of a layer. Some publishers count the
// word embedding as active; others leave it out if the output layer has its own weights.
struct ParameterCounts {
  double all = 0;
  double active = 0;
  double active_without_embedding = 0;
  double predictors = 0;  // multi-token prediction, in none of the other counts
  friend bool operator==(const ParameterCounts&, const ParameterCounts&) = default;
};
ParameterCounts parameter_counts(const Transformer& model);

// Parameters by the ranks over which their gradients are summed.
struct Parameters {
  double dense = 0;
  double expert = 0;
  // Parts of the above: operands of GEMMs in fewer than 16 bits.
  double narrow_dense = 0;
  double narrow_expert = 0;
  double narrow_output = 0;  // of an output layer, which also keeps 16-bit weights
  // Parts of the above: frozen parameters, and frozen parameters of fewer than 16 bits (model/adapters.hpp).
  double frozen_dense = 0;
  double frozen_expert = 0;
  double quantized_dense = 0;
  double quantized_expert = 0;
  // Frozen parameters of layers or ends of the model that also have trained ones.
  double beside_dense = 0;
  double beside_expert = 0;
  constexpr Parameters(double outside_experts = 0,  // NOLINT(google-explicit-constructor)
                       double of_experts = 0, double narrow_outside = 0, double narrow_of_experts = 0)
      : dense(outside_experts),
        expert(of_experts),
        narrow_dense(narrow_outside),
        narrow_expert(narrow_of_experts) {}
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

constexpr double total(const Parameters& parameters) { return parameters.dense + parameters.expert; }

// Returns the trained parameters, which have gradients and are stepped.
constexpr Parameters trained(Parameters parameters) {
  parameters.dense -= parameters.frozen_dense;
  parameters.expert -= parameters.frozen_expert;
  parameters.frozen_dense = parameters.frozen_expert = 0;
  parameters.quantized_dense = parameters.quantized_expert = 0;
  parameters.beside_dense = parameters.beside_expert = 0;
  return parameters;
}

// Returns the parameters of one class.
constexpr Parameters of_class(Parameters parameters, WeightClass weights) {
  if (weights == WeightClass::dense) {
    parameters.expert = parameters.narrow_expert = parameters.frozen_expert = parameters.quantized_expert = 0;
    parameters.beside_expert = 0;
  } else {
    parameters.dense = parameters.narrow_dense = parameters.frozen_dense = parameters.quantized_dense = 0;
    parameters.narrow_output = parameters.beside_dense = 0;
  }
  return parameters;
}

// Parameters of the parts of a model that one tensor-parallel rank holds.
struct ModelParameters {
  std::vector<Parameters> kinds;  // of one layer or end, in the order of ModelLayers::kinds
  // The output layer's weights, if the rank also holds the embedding that they are tied to.
  double shared = 0;
  // The word embedding's weights, which multi-token prediction copies to a rank without them.
  double copied = 0;
  std::vector<MatrixList> matrices;  // of one layer of each kind, if the optimizer steps matrices
  friend bool operator==(const ModelParameters&, const ModelParameters&) = default;
};

// Returns the parameters of a rank that holds the output layer, without the weights it shares with the
// embedding.
constexpr Parameters without_shared(Parameters held, const ModelParameters& parts) {
  held.dense -= parts.shared;
  if (held.frozen_dense > 0) held.frozen_dense -= parts.shared;
  return held;
}

// Returns whether a pipeline rank holds the copy of the word embedding: it holds the output layer, which is
// the last kind, but not both ends.
constexpr bool has_copy(const ModelParameters& parts, const KindCounts& counts, bool both_ends) {
  return parts.copied > 0 && !both_ends && !counts.empty() && counts[counts.size() - 1] > 0;
}

// Symbolic parameters, valid for every t that shards this way.
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

// Returns the parameters of a pipeline rank. `counts` has the layers of each kind on its virtual stages; the
// last kind is the output layer's. `both_ends`: the rank holds the first and the last virtual stage.
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
    sum.beside_dense += static_cast<double>(counts[i]) * parts.kinds[i].beside_dense;
    sum.beside_expert += static_cast<double>(counts[i]) * parts.kinds[i].beside_expert;
  }
  if (both_ends) return without_shared(sum, parts);
  if (has_copy(parts, counts, both_ends)) {
    sum.dense += parts.copied;
    if (sum.frozen_dense > 0) sum.frozen_dense += parts.copied;
  }
  return sum;
}

// Returns the matrices of a pipeline rank; empty if the optimizer does not step matrices.
MatrixList matrices_of_rank(const ModelParameters& parts, const KindCounts& counts, bool both_ends);

// Returns the parameters of each pipeline rank, for one of its tensor-parallel ranks. The first and the last
// rank each hold tied embeddings with gradients and optimizer state of their own, unless they are the same
// rank.
std::vector<Parameters> parameters_by_rank(const Transformer& model, const Strategy& strategy,
                                           const Workload& workload);

// Returns the parameters that a rank's optimizer steps: its shard of the trained ones among `held`.
double stepped_by_rank(const Parameters& held, const Strategy& strategy);

// Returns the parameters that have gradients: the trained ones, and frozen ones that a flat parameter holds with
// them (StackSharding::flat_parameters).
Parameters with_gradients(const Parameters& held, const Strategy& strategy, const Software& software);

// Returns bytes of frozen weights, in 16 bits or fewer.
double frozen_bytes(const Parameters& held, BaseDtype base);

// Returns bytes of a weight for GEMMs in fewer than 16 bits, with its share of a scale.
constexpr double weight_size(Dtype dtype) {
  const BlockScales& scales = row_of(dtype).scales;
  return (bits_of(dtype) + static_cast<double>(scales.bits) / scales.weight_block) / 8;
}

// Returns bytes that a rank keeps of a weight for GEMMs in fewer than 16 bits, from the first microbatch to
// the last. They cover the copies that GEMMs need (hardware/device.hpp), and the 16-bit weight they were cast
// from unless weights are stored in fewer bits alone [Transformer Engine, module/base.py,
// get_weight_workspace; Megatron-LM, --fp8-param-gather].
double narrow_weight_size(const Strategy& strategy, int copies);

// Returns bytes of the copies alone.
double copies_size(const Strategy& strategy, int copies);

// Returns bytes of such a weight that data-parallel ranks gather after a step. MXFP8 weights travel in 16
// bits, in the gradient buffer [Megatron-LM, --reuse-grad-buf-for-mxfp8-param-ag].
double gathered_narrow_weight_size(const Strategy& strategy);

// Returns bytes of the gradients of `parameters` parameters.
constexpr Bytes gradient_bytes(double parameters, Dtype dtype) {
  return Bytes(parameters * static_cast<double>(size_of(dtype)));
}

// Returns bytes of weights gathered from their shards. Frozen weights of fewer than 16 bits are gathered as
// stored.
Bytes gathered_bytes(const Parameters& parameters, const Strategy& strategy);

// Returns the state of a rank. Data sharding divides each class over the ranks that hold the same weights:
// optimizer state, gradients from zero2 on, weights with zero3.
//
// The state includes weights and gradients that stay whole for an iteration despite sharding: weights on
// pipeline ranks, and gradients that a stack sums before it reduces them. It excludes what passes gather and
// reduce unit by unit (memory/units.hpp). With zero2 under a pipeline, gradients of two virtual stages are
// whole beside the shards; the stages are taken to be equal.
//
// `copies` is the number of copies of each weight for GEMMs in fewer than 16 bits.
//
// Muon's state of matrices is that of the rank that steps the most of them. Gradients count twice if buckets
// have copies of them. Adafactor's state of rows and columns is whole on every rank [PyTorch,
// torch/distributed/tensor/_ops/_tensor_ops.py, new_factory_strategy]. `matrices` are the matrices among
// `parameters`.
ModelState model_state(const Transformer& model, const Strategy& strategy, const Workload& workload,
                       const Parameters& parameters, int copies = 2, const Software& software = {},
                       const MatrixList& matrices = {});

}  // namespace headroom

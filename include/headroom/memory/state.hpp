// Weights, gradients and optimizer state of a rank: mixed-precision Adam [K22 section 6; Megatron-LM,
// docs/source/api-guide/dist_optimizer: 16 to 18 bytes a parameter, of which 12 can be sharded].
#pragma once

#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Parameters of the whole model as published: the vocabulary unpadded, tied embeddings counted once.
double parameter_count(const Transformer& model);

// Parameters of the parts of a model that one tensor-parallel rank holds.
struct ModelParameters {
  double layer = 0;
  double embedding = 0;
  double head = 0;
  double shared = 0;  // the output layer's weights, where tied embeddings stand on one rank with them
  friend bool operator==(const ModelParameters&, const ModelParameters&) = default;
};

// The same in symbols, for all t that shard alike.
struct ModelParameterExprs {
  Expr layer;
  Expr embedding;
  Expr head;
  Expr shared;
};

ModelParameterExprs model_parameter_exprs(const Transformer& model, const Sharding& sharding);
ModelParameters evaluate(const ModelParameterExprs& exprs, const Bindings& letters);

ModelParameters model_parameters(const Transformer& model, const Strategy& strategy,
                                 const Workload& workload);

// Of a pipeline rank that holds so many layers.
constexpr double parameters_of_rank(const ModelParameters& parts, std::int64_t layers, bool first,
                                    bool last) {
  double sum = static_cast<double>(layers) * parts.layer;
  if (first) sum += parts.embedding;
  if (last) sum += parts.head;
  return first && last ? sum - parts.shared : sum;
}

// Parameters of each pipeline rank (of one of its tensor-parallel ranks). Tied embeddings stand on the first and on the
// last rank, each with gradients and optimizer state of its own, unless those are the same rank.
std::vector<double> parameters_by_rank(const Transformer& model, const Strategy& strategy,
                                       const Workload& workload);

struct ModelState {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;  // fp32 master weights and two fp32 moments; a 1/d shard with a distributed optimizer
  friend bool operator==(const ModelState&, const ModelState&) = default;
};

constexpr Bytes total(const ModelState& state) { return state.weights + state.gradients + state.optimizer; }

ModelState model_state(const Transformer& model, const Strategy& strategy, double parameters);

}  // namespace headroom

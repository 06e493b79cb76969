#include "headroom/memory/state.hpp"

#include <cmath>

#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

// The output layer's weight matrix, which tied embeddings share with the word embedding.
constexpr Expr output_weights(const Sharding& sharding) {
  using namespace symbols;
  return v * h * share(Placement::split, sharding);
}

}  // namespace

double parameter_count(const Transformer& model) {
  Transformer unpadded = model;
  unpadded.vocabulary_multiple = 1;
  return parameters_by_rank(unpadded, Strategy{}, {.global_batch = 1, .sequence = 1}).front();
}

ModelParameterExprs model_parameter_exprs(const Transformer& model, const Sharding& sharding) {
  return {.layer = parameters(layer_ops(model.architecture), sharding),
          .embedding = parameters(embedding_ops(model.architecture), sharding),
          .head = parameters(head_ops(model.architecture), sharding),
          .shared = model.architecture.tied_embeddings ? output_weights(sharding) : Expr()};
}

ModelParameters evaluate(const ModelParameterExprs& exprs, const Bindings& letters) {
  return {.layer = exprs.layer.evaluate(letters),
          .embedding = exprs.embedding.evaluate(letters),
          .head = exprs.head.evaluate(letters),
          .shared = exprs.shared.evaluate(letters)};
}

ModelParameters model_parameters(const Transformer& model, const Strategy& strategy,
                                 const Workload& workload) {
  return evaluate(model_parameter_exprs(model, sharding_of(model, strategy)),
                  bindings(model, strategy, workload));
}

std::vector<double> parameters_by_rank(const Transformer& model, const Strategy& strategy,
                                       const Workload& workload) {
  const ModelParameters parts = model_parameters(model, strategy, workload);
  const std::vector<std::int64_t> layers = layers_by_stage(model, strategy);
  const auto ranks = static_cast<std::size_t>(strategy.pipeline_parallel);
  std::vector<double> parameters;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::int64_t held = 0;
    for (std::size_t stage = rank; stage < layers.size(); stage += ranks) held += layers[stage];
    parameters.push_back(parameters_of_rank(parts, held, rank == 0, rank + 1 == ranks));
  }
  return parameters;
}

ModelState model_state(const Transformer& model, const Strategy& strategy, double parameters) {
  constexpr double moments = 2 * 4;
  constexpr double master_weights = 4;
  const bool fp32_weights = model.architecture.kernels.weight_copies;
  const double shards = strategy.distributed_optimizer ? static_cast<double>(strategy.data_parallel) : 1;
  const double optimizer = fp32_weights ? moments : master_weights + moments;
  const auto gradient = static_cast<double>(size_of(fp32_weights ? Dtype::fp32 : strategy.gradient_dtype));
  return {.weights = Bytes(parameters * (fp32_weights ? 4 : 2)),
          .gradients = Bytes(parameters * gradient),
          .optimizer = Bytes(std::ceil(parameters * optimizer / shards))};
}

}  // namespace headroom

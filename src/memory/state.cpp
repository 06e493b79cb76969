#include "headroom/memory/state.hpp"

#include <cmath>

#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/schedule/order.hpp"

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

std::vector<double> parameters_by_rank(const Transformer& model, const Strategy& strategy,
                                       const Workload& workload) {
  const Sharding sharding = sharding_of(model, strategy);
  const Bindings letters = bindings(model, strategy, workload);
  const auto count = [&](const Expr& expr) { return expr.evaluate(letters); };
  const double layer = count(parameters(layer_ops(model.architecture), sharding));

  const std::vector<std::int64_t> layers = layers_by_stage(model, strategy);
  const ScheduleShape shape = schedule_shape(strategy, 1);
  std::vector<double> ranks(static_cast<std::size_t>(shape.ranks));
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    ranks[stage % ranks.size()] += static_cast<double>(layers[stage]) * layer;
  }
  ranks.front() += count(parameters(embedding_ops(model.architecture), sharding));
  ranks.back() += count(parameters(head_ops(model.architecture), sharding));
  if (ranks.size() == 1 && model.architecture.tied_embeddings)
    ranks.front() -= count(output_weights(sharding));
  return ranks;
}

ModelState model_state(const Transformer& model, const Strategy& strategy, double parameters) {
  constexpr double moments = 2 * 4;
  constexpr double master_weights = 4;
  const bool fp32_weights = model.architecture.kernels.weight_copies;
  const double shards = strategy.distributed_optimizer ? static_cast<double>(strategy.data_parallel) : 1;
  const double optimizer = fp32_weights ? moments : master_weights + moments;
  const auto gradient = static_cast<double>(size_of(fp32_weights ? Dtype::fp32 : strategy.gradients));
  return {.weights = Bytes(parameters * (fp32_weights ? 4 : 2)),
          .gradients = Bytes(parameters * gradient),
          .optimizer = Bytes(std::ceil(parameters * optimizer / shards))};
}

}  // namespace headroom

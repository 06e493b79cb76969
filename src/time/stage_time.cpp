#include "headroom/time/stage_time.hpp"

#include <algorithm>
#include <cmath>

namespace headroom {
ModelCost model_cost(const Transformer& model, const Strategy& strategy, const Setting& setting) {
  return {.layer = layer_cost(model, strategy, setting),
          .embedding = embedding_cost(model, setting),
          .head = head_cost(model, setting)};
}

Extrapolations beyond(const ModelCost& cost) {
  return cost.layer.beyond | cost.embedding.beyond | cost.head.beyond;
}

StageCost stage_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute) {
  StageCost stage{.forward = place.layers * cost.layer.forward,
                  .replay = replayed_layers(place.layers, recompute) * cost.layer.replay,
                  .backward = place.layers * backward(cost.layer)};
  if (place.first) {
    stage.forward += cost.embedding.forward;
    stage.backward += backward(cost.embedding);
  }
  if (place.last) {
    stage.forward += cost.head.forward;
    stage.backward += backward(cost.head);
  }
  return stage;
}

std::vector<StageCost> stage_costs(const ModelCost& cost, const Transformer& model,
                                   const Strategy& strategy) {
  std::vector<StageCost> stages;
  for (const StagePlace& place : stage_places(model, strategy)) {
    stages.push_back(stage_cost(cost, place, strategy.recompute));
  }
  return stages;
}

Seconds pass_time(const PassCost& cost, const HostRates& rates, const Software& software) {
  const auto operations = static_cast<double>(cost.operations);
  const Seconds device = device_time(cost);
  const Seconds host = operations * rates.operation.value;
  if (software.blocking_launches) return device + host + operations * rates.blocking_operation.value;
  const Seconds longer = std::max(device, host);
  if (longer == Seconds(0)) return longer;
  const double q = rates.balance.value;
  return longer * std::pow(std::pow(device / longer, q) + std::pow(host / longer, q), 1 / q);
}

}  // namespace headroom

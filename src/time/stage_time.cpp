#include "headroom/time/stage_time.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {

ModelWork model_work(const Architecture& architecture, const Setting& setting) {
  return {.layer = table_work(layer_ops(architecture), setting),
          .embedding = table_work(embedding_ops(architecture), setting),
          .head = table_work(head_ops(architecture), setting)};
}

PricedModel priced(const ModelWork& work, const Setting& setting) {
  return {.layer = priced(work.layer, setting),
          .embedding = table_cost(priced(work.embedding, setting), {}),
          .head = table_cost(priced(work.head, setting), {})};
}

ModelCost model_cost(const PricedModel& model, const Replay& replay) {
  return {.layer = table_cost(model.layer, replay), .embedding = model.embedding, .head = model.head};
}

ModelCost model_cost(const Transformer& model, const Strategy& strategy, const Setting& setting) {
  return model_cost(priced(model_work(model.architecture, setting), setting),
                    replay_of(layer_ops(model.architecture), strategy.recompute));
}

Extrapolations beyond(const ModelCost& cost) {
  return cost.layer.beyond | cost.embedding.beyond | cost.head.beyond;
}

PassCost replay_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute) {
  return replayed_layers(place.layers, recompute) * cost.layer.replay;
}

StageCost stage_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute) {
  StageCost stage{.forward = place.layers * cost.layer.forward,
                  .replay = replay_cost(cost, place, recompute),
                  .backward = place.layers * backward(cost.layer),
                  .backward_data = place.layers * cost.layer.backward_data,
                  .backward_weight = place.layers * cost.layer.backward_weight};
  const auto add = [&](const LayerCost& end) {
    stage.forward += end.forward;
    stage.backward += backward(end);
    stage.backward_data += end.backward_data;
    stage.backward_weight += end.backward_weight;
  };
  if (place.first) add(cost.embedding);
  if (place.last) add(cost.head);
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
  // The longer one's term of the sum is 1.
  return longer * std::pow(1 + std::pow(std::min(device, host) / longer, q), 1 / q);
}

}  // namespace headroom

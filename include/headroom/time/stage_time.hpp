// Cost of one microbatch on each virtual stage of the pipeline, and the time of its passes on device and host
// together.
#pragma once

#include <vector>

#include "headroom/parallel/stage_places.hpp"
#include "headroom/time/layer_cost.hpp"

namespace headroom {

// ModelCost in three steps, each of which serves many strategies: symbolic work, for all that shard alike;
// prices, for one t and b; and costs under a recomputation policy.
struct ModelWork {
  std::vector<TableWork> kinds;
  std::vector<KindSizes> sizes;  // of each kind
  std::int64_t narrow_linears = 0;
};
struct PricedModel {
  std::vector<PricedTable> kinds;
  ScaleCosts scales = {};
  Sharding sharding = {};
};
ModelWork model_work(const ModelLayers& layers, const Setting& setting);
PricedModel priced(const ModelWork& work, const Setting& setting);
ModelCost model_cost(const PricedModel& model, const ModelLayers& layers, const Recomputation& recompute);

ModelCost model_cost(const Transformer& model, const Strategy& strategy, const Setting& setting);

Extrapolations beyond(const ModelCost& cost);

// Returns the cost of a stage's recomputation.
PassCost recompute_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute);

StageCost stage_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute);

// Returns the costs of every virtual stage of the model, in order: p m of them.
std::vector<StageCost> stage_costs(const ModelCost& cost, const Transformer& model, const Strategy& strategy);

// Returns the time of a pass. The host launches ahead of the device. The longer of the two decides; if they
// are close, they delay each other: (device^q + host^q)^(1/q), q = HostRates::balance. After the host waited
// for the device, the device idles until the next launch, which counts as device time. With blocking launches
// the two take turns. Exposed collectives of shards and host transfers are added to this.
Seconds pass_time(const PassCost& cost, const HostRates& rates, const Software& software);
// Returns the time of a forward pass in which the host may wait for the device. The host loses its lead at
// each wait. Backward passes have no waits; recomputation is priced without them.
Seconds forward_time(const PassCost& cost, const Race& race, const HostRates& rates,
                     const Software& software);

}  // namespace headroom

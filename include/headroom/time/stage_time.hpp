// What one microbatch costs on each virtual stage of the pipeline, and how long host and device together take for it.
#pragma once

#include <vector>

#include "headroom/parallel/stage_places.hpp"
#include "headroom/time/layer_cost.hpp"

namespace headroom {

// Layers of the chunk, the embedding on the first, the head on the last.
struct StageCost {
  PassCost forward;
  PassCost recompute;
  PassCost backward;       // without the recomputation: of inputs and weights in one pass
  PassCost backward_data;  // and in two
  PassCost backward_weight;
  friend bool operator==(const StageCost&, const StageCost&) = default;
};

// What a pass of a virtual stage takes for the scales of the model's products, whatever it holds: bytes are next to nothing.
struct ScaleCosts {
  PassCost forward;
  PassCost backward;
  friend bool operator==(const ScaleCosts&, const ScaleCosts&) = default;
};

// The parts of a model, each priced once: a layer of every kind and both ends, in the order of ModelLayers::kinds.
struct ModelCost {
  std::vector<LayerCost> kinds;
  ScaleCosts scales = {};
  friend bool operator==(const ModelCost&, const ModelCost&) = default;
};

// The same in three steps, of which each serves many strategies: in symbols, for all that shard alike; priced, for
// one t and b; and with the recomputation of a policy.
struct ModelWork {
  std::vector<TableWork> kinds;
  std::vector<KindSizes> sizes;  // of these
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

// What of it the layers recompute.
PassCost recompute_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute);

StageCost stage_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute);

// Every virtual stage of the model, in order: p m of them.
std::vector<StageCost> stage_costs(const ModelCost& cost, const Transformer& model, const Strategy& strategy);

// The device runs behind the host, which launches ahead: the longer of the two decides, and where they are alike both
// delay each other. (device^q + host^q)^(1/q), q = HostRates::balance. Where the host waits for the device, that stands still until
// the next operation is launched, which counts as its time. Where launches block they take turns.
Seconds pass_time(const PassCost& cost, const HostRates& rates, const Software& software);

}  // namespace headroom

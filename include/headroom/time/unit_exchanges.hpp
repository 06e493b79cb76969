// Exposed time of gathering weights and reducing gradients unit by unit, in the passes of a rank whose
// weights or gradients are sharded (parallel/data_shards.hpp, memory/units.hpp).
//
// Collectives run on streams of their own. A forward pass gathers a unit while the preceding unit computes. A
// backward pass gathers the preceding unit and reduces the following unit while the current unit computes.
// Collectives beside a unit add the time by which they outlast it, or else the time they take from its
// kernels:
//   max(collectives - unit, overlap_loss * collectives)
// Without `overlap_param_gather`, weights are gathered after the preceding unit, with no overlap. Without
// `overlap_grad_reduce`, gradients are reduced before the next unit, with no overlap. The first gather and
// the last reduction of a pass never overlap. Collectives on one link run one after another; those within a
// node overlap those between nodes.
//
// Offloaded data crosses each device's link to its host, both ways at once, by copy engines that slow no
// kernel. A layer's saved activations leave beside its own forward computation and return beside the backward
// computation of the layer after it. A shard of weights arrives before its unit is gathered; a shard of
// gradients leaves when it is reduced.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/hardware/software.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/time/collective.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {

// Time of collectives on each link.
struct LinkTimes {
  Seconds in_node;
  Seconds between_nodes;
  friend bool operator==(const LinkTimes&, const LinkTimes&) = default;
};
constexpr LinkTimes operator+(const LinkTimes& x, const LinkTimes& y) {
  return {x.in_node + y.in_node, x.between_nodes + y.between_nodes};
}
constexpr Seconds longest(const LinkTimes& x) {
  return x.in_node < x.between_nodes ? x.between_nodes : x.in_node;
}
constexpr Seconds sum(const LinkTimes& x) { return x.in_node + x.between_nodes; }

// Exchanges of a layer of a kind, or of an end of the model.
struct UnitExchange {
  KindPosition position = KindPosition::layer;
  LinkTimes gather;
  LinkTimes reduction;  // within each shard group and between copies of the shards
  // Kernels that copy between tensors and the buffers of collectives, on the stream of the passes.
  PassCost gather_copies;
  PassCost reduction_copies;
  // Offloaded transfers between device and host, one way.
  Seconds fetch;                   // the unit's shard of weights, before its gather
  Seconds send;                    // the unit's shard of gradients, as it is reduced
  Seconds activations;             // activations of a layer
  Seconds recomputed_activations;  // activations of a recomputed layer
  bool within_fit = true;
  friend bool operator==(const UnitExchange&, const UnitExchange&) = default;
};

struct ModelExchanges {
  std::vector<UnitExchange> kinds;  // in the order of ModelLayers::kinds
  bool keeps_gathered = false;      // weights stay gathered after the forward pass
  bool ends_in_root = false;
  friend bool operator==(const ModelExchanges&, const ModelExchanges&) = default;
};

// Returns whether passes have exchanges: of shards, or with the host.
inline bool has_exchanges(const Strategy& strategy, const Workload& workload, const Software& software) {
  return has_units(strategy, workload, software) || offloads_activations(strategy.offload);
}

// Returns the times of a stage's exchanges. `cost` is that of the model's layers under the recomputation.
ExchangeTimes exchange_times(const ModelExchanges& exchanges, const ModelCost& cost, const StagePlace& place,
                             const Recomputation& recompute, const Performance& performance,
                             const Software& software);

// Work of a unit in a pass: its own computation, or a collective beside it.
enum class UnitWork : std::uint8_t { compute, gather, reduce };
struct UnitSpan {
  UnitWork work = UnitWork::compute;
  std::size_t kind = 0;
  // Index along the stage, ends included. If both ends form one unit, the index is that of the last.
  std::int64_t unit = 0;
  Seconds start;  // from the start of the pass
  Seconds end;
  friend bool operator==(const UnitSpan&, const UnitSpan&) = default;
};

// Returns the spans of a pass of one microbatch, unit by unit: the sums of exchange_times, laid out in time.
// The last span ends with the pass.
std::vector<UnitSpan> unit_spans(const ModelExchanges& exchanges, const ModelCost& cost,
                                 const StagePlace& place, const Recomputation& recompute,
                                 const Performance& performance, const Software& software, bool backward);

// Returns the stage's cost plus exposed exchanges and their copies.
StageCost with_exchanges(StageCost stage, const ModelExchanges& exchanges, const ExchangeTimes& times,
                         const StagePlace& place);

}  // namespace headroom

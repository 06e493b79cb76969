// What gathering weights and reducing gradients unit by unit adds to the passes of a rank, where data-parallel ranks divide
// them (parallel/data_shards.hpp, memory/units.hpp).
//
// Collectives run on streams of their own. A forward pass gathers a unit while the one before it computes; a backward pass
// gathers the one before while the one under way computes, and reduces the one after it. What is beside a unit shows where
// it is longer, and where it is not by what it takes from the unit's kernels:
//   max(collectives - unit, overlap_loss * collectives)
// Without `overlap_param_gather` weights are gathered behind the unit before, and without `overlap_grad_reduce` gradients are
// reduced ahead of the next unit, beside nothing.
// The first unit of a pass is gathered, and the last one reduced, beside nothing. Collectives of one link follow each other;
// those in a node run beside those between nodes.
//
// What is offloaded goes over each device's link to its host, one way beside the other, and by copy engines that slow no kernel:
// what a layer saved goes there beside its own forward computation, and comes back beside the backward computation of the layer after
// it; a shard of weights comes before its unit is gathered, and one of gradients goes when it is reduced.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headroom/hardware/software.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/time/collective.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {

// Of collectives, by the link that they run on.
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

// Of a layer of a kind, or of an end of the model.
struct UnitExchange {
  KindPosition position = KindPosition::layer;
  LinkTimes gather;
  LinkTimes reduction;  // in each shard group, and between the copies of the shards
  // Kernels that copy between tensors and the buffers of collectives, on the stream of the passes.
  PassCost gather_copies;
  PassCost reduction_copies;
  // One way between the device and its host, where these are offloaded.
  Seconds fetch;                   // of the unit's shard of weights, before it is gathered
  Seconds send;                    // of its shard of gradients, when it is reduced
  Seconds activations;             // of what a layer saved
  Seconds recomputed_activations;  // likewise, where it is recomputed
  bool within_fit = true;
  friend bool operator==(const UnitExchange&, const UnitExchange&) = default;
};

struct ModelExchanges {
  std::vector<UnitExchange> kinds;  // in the order of ModelLayers::kinds
  bool keeps_gathered = false;      // from the forward pass on
  bool ends_in_root = false;
  friend bool operator==(const ModelExchanges&, const ModelExchanges&) = default;
};

// Whether passes have any: of shards, or with the host.
inline bool has_exchanges(const Strategy& strategy, const Workload& workload, const Software& software) {
  return has_units(strategy, workload, software) || offloads_activations(strategy.offload);
}

// Of one microbatch: collectives and transfers as if nothing ran beside them, and what of them shows.
struct ExchangeTimes {
  Seconds gather;
  Seconds reduction;
  Seconds host;  // both ways
  Seconds exposed_forward;
  Seconds exposed_backward;
  Seconds exposed_host_forward;  // beyond what collectives alone show
  Seconds exposed_host_backward;
  friend bool operator==(const ExchangeTimes&, const ExchangeTimes&) = default;
};

inline ExchangeTimes operator+(const ExchangeTimes& x, const ExchangeTimes& y) {
  return {.gather = x.gather + y.gather,
          .reduction = x.reduction + y.reduction,
          .host = x.host + y.host,
          .exposed_forward = x.exposed_forward + y.exposed_forward,
          .exposed_backward = x.exposed_backward + y.exposed_backward,
          .exposed_host_forward = x.exposed_host_forward + y.exposed_host_forward,
          .exposed_host_backward = x.exposed_host_backward + y.exposed_host_backward};
}

// `cost` is that of the model's layers under the recomputation.
ExchangeTimes exchange_times(const ModelExchanges& exchanges, const ModelCost& cost, const StagePlace& place,
                             const Recomputation& recompute, const Performance& performance,
                             const Software& software);

// What a unit does in a pass: its own computation, or a collective beside it.
enum class UnitWork : std::uint8_t { compute, gather, reduce };
struct UnitSpan {
  UnitWork work = UnitWork::compute;
  std::size_t kind = 0;
  std::int64_t unit =
      0;  // counted along the stage from its first, the ends included; of ends that are one unit the last one's
  Seconds start;  // from the start of the pass
  Seconds end;
  friend bool operator==(const UnitSpan&, const UnitSpan&) = default;
};

// A pass of one microbatch, unit by unit: the sums of exchange_times, laid out in time. The last ends with the pass.
std::vector<UnitSpan> unit_spans(const ModelExchanges& exchanges, const ModelCost& cost,
                                 const StagePlace& place, const Recomputation& recompute,
                                 const Performance& performance, const Software& software, bool backward);

// The stage with what shows of them and with their copies.
StageCost with_exchanges(StageCost stage, const ModelExchanges& exchanges, const ExchangeTimes& times,
                         const StagePlace& place);

}  // namespace headroom

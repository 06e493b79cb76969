// Recomputation mixes of a virtual stage: one set of ops in all of its layers, or one set in the first layers
// and another in the rest, for each kind of layer. Two sets suffice for a knapsack of equal layers: on the
// convex hull of (bytes, time), every budget lies between two neighbours.
//
// The set with more recomputed bytes comes first in the chunk. The backward pass reaches it last, when it has
// freed the layers behind it. Swapping two neighbours into this order never raises the peak.
#pragma once

#include <vector>

#include "headroom/search/layer_front.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {

// Refers to its choices. A chunk with at most `first_layers` layers has only layers of the first choice.
struct LayerMix {
  const KindChoices& first;
  const KindChoices& rest;
  std::int64_t first_layers = 0;
};

// Consecutive layers of a kind with equal recomputation.
struct MixRun {
  std::size_t kind = 0;
  std::int64_t layers = 0;
  LayerChoice choice;
  friend bool operator==(const MixRun&, const MixRun&) = default;
};

// Returns the runs of a mix in a virtual stage, in model order.
std::vector<MixRun> runs_of(const LayerMix& mix, const StagePlace& place);

// Returns the activation bytes of a virtual stage with this recomputation, including the parts of `ends` that
// `place` assigns to the stage.
StageActivations stage_activations(const LayerMix& mix, const StagePlace& place,
                                   const ModelActivations& ends);

// Returns the cost of a virtual stage with this recomputation. Expects `cost` of the model's parts without
// recomputation.
StageCost stage_cost(const LayerMix& mix, const StagePlace& place, const ModelCost& cost);

// Computes the time that recomputation adds to a rank's backward passes of one microbatch through its virtual
// stages.
class RecomputeTime {
 public:
  // Expects the backward passes of each chunk without recomputation. Keeps references to rates and software.
  RecomputeTime(std::vector<PassCost> backward, const HostRates& rates, const Software& software);

  // Returns the added time if each chunk recomputes for `device` on the GPU and `host` on the CPU.
  [[nodiscard]] Seconds seconds(Seconds device, Seconds host) const;
  // Returns a quick lower bound of seconds(): a tangent of pass_time(), which is convex.
  [[nodiscard]] Seconds at_least(Seconds device, Seconds host) const;

 private:
  std::vector<PassCost> backward_;
  Seconds without_;
  double of_device_ = 0;  // slopes of the tangent without recomputation
  double of_host_ = 0;
  const HostRates& rates_;
  const Software& software_;
};

// A mix by the indices of its choices, and its bytes and time in one chunk.
struct IndexedMix {
  std::size_t first = 0;
  std::size_t rest = 0;
  std::int64_t first_layers = 0;
  Bytes kept;
  Bytes highest;  // saved bytes, plus recomputed bytes at the worst moment of a backward pass
  Seconds device;
  Seconds host;
  Seconds time;  // RecomputeTime::seconds
};

// Returns the mixes of `choices`, by time, that no other mix dominates in time, saved bytes and highest
// bytes. The chunk has so many layers, all of one kind.
std::vector<IndexedMix> stage_mixes(const std::vector<LayerChoice>& choices, std::int64_t layers,
                                    const RecomputeTime& time);

LayerMix mix_of(const IndexedMix& mix, const std::vector<KindChoices>& choices);

}  // namespace headroom

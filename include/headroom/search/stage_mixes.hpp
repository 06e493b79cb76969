// What the layers of a virtual stage can recompute together: one set of ops in all of them, or one in the first
// layers and another in the rest, for each kind of layer. Two sets are what a knapsack of alike layers needs: on the
// convex hull of (bytes, time) every budget lies between two neighbours.
//
// The set whose recomputation makes more again comes first in the chunk: the backward pass reaches it last, when it
// has freed the layers behind it. Swapping two neighbours that stand the other way round never raises the peak.
#pragma once

#include <vector>

#include "headroom/search/layer_front.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {

// Refers to its choices. Of a chunk that has fewer layers all are among the first.
struct LayerMix {
  const KindChoices& first;
  const KindChoices& rest;
  std::int64_t first_layers = 0;
};

// Consecutive layers of a kind that recompute alike.
struct MixRun {
  std::size_t kind = 0;
  std::int64_t layers = 0;
  LayerChoice choice;
  friend bool operator==(const MixRun&, const MixRun&) = default;
};

// A mix in a virtual stage, in the order of the model.
std::vector<MixRun> runs_of(const LayerMix& mix, const StagePlace& place);

// Bytes of a virtual stage whose layers recompute so, beside them what `place` gives it of `ends`.
StageActivations stage_activations(const LayerMix& mix, const StagePlace& place,
                                   const ModelActivations& ends);

// Its cost, where `cost` is that of the model's parts without a recomputation.
StageCost stage_cost(const LayerMix& mix, const StagePlace& place, const ModelCost& cost);

// How long recomputations keep a rank that passes a microbatch backward through its virtual stages, beyond those
// passes.
class RecomputeTime {
 public:
  // `backward` are the passes without a recomputation, of each chunk. Keeps a reference to rates and software.
  RecomputeTime(std::vector<PassCost> backward, const HostRates& rates, const Software& software);

  // Where each of the chunks recomputes so much.
  [[nodiscard]] Seconds seconds(Seconds device, Seconds host) const;
  // At most that, and quick.
  [[nodiscard]] Seconds at_least(Seconds device, Seconds host) const;

 private:
  std::vector<PassCost> backward_;
  Seconds without_;
  const HostRates& rates_;
  const Software& software_;
};

// A mix by the index of its choices, and what it comes to in one chunk.
struct IndexedMix {
  std::size_t first = 0;
  std::size_t rest = 0;
  std::int64_t first_layers = 0;
  Bytes kept;
  Bytes highest;  // kept, and on top what a recomputation makes again at the worst moment of a backward pass
  Seconds device;
  Seconds host;
  Seconds time;  // RecomputeTime::seconds
};

// The mixes of `choices` in a chunk of so many layers, all of one kind, that no other one beats in time, bytes kept
// and highest bytes; by time.
std::vector<IndexedMix> stage_mixes(const std::vector<LayerChoice>& choices, std::int64_t layers,
                                    const RecomputeTime& time);

LayerMix mix_of(const IndexedMix& mix, const std::vector<KindChoices>& choices);

}  // namespace headroom

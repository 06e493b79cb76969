// What a layer can replay, exactly: every set of ops of its table, with the bytes that it keeps, those that its replay
// makes again, and what the replay costs; and of all sets those that no other one beats.
//
// A set drops all that its ops make (Replay::discard_outputs). To keep some of it would take the same replay and more
// memory, so that these sets are the best among all ways to keep, drop and replay what the table holds: K22's
// checkpoint of core attention, which keeps its output, is one of those ways.
#pragma once

#include <vector>

#include "headroom/memory/stage.hpp"
#include "headroom/time/layer_cost.hpp"

namespace headroom {

// What a layer replays and what that makes of it, for one microbatch on one rank.
struct LayerChoice {
  OpSet ops = 0;
  LayerActivations bytes;
  PassCost replay;
  friend bool operator==(const LayerChoice&, const LayerChoice&) = default;
};

// No more of anything that a peak of memory or an iteration's time grows with: bytes kept, bytes made again, device
// time, operations of the host.
bool no_worse(const LayerChoice& x, const LayerChoice& y);

// A layer as the policy of the strategy replays it.
LayerChoice layer_choice(const Transformer& model, const Strategy& strategy, const Workload& workload,
                         Detail detail, const Setting& setting);

// Every set, by its bits: 2^ops of them. The recomputation of the strategy plays no part.
std::vector<LayerChoice> all_layer_choices(const Transformer& model, const Strategy& strategy,
                                           const Workload& workload, Detail detail, const Setting& setting);

// Of those, the ones that no other is no worse than; of alike ones, the first by bits. The first keeps everything, and
// none keeps more than the one before it.
std::vector<LayerChoice> layer_front(const std::vector<LayerChoice>& choices);

}  // namespace headroom

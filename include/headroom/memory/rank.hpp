// Activation memory of each pipeline rank at its peak, found by walking through the rank's schedule.
#pragma once

#include <span>
#include <vector>

#include "headroom/memory/step.hpp"

namespace headroom {

struct RankActivations {
  std::int64_t pipeline_rank = 0;
  std::int64_t layers = 0;            // that the rank holds
  std::int64_t chunks_in_flight = 0;  // most forward passes alive; m are one microbatch's worth
  Activations at_peak;
  Step peak;  // forward: at its end; backward: during the replay of its last checkpoint that replays
  friend bool operator==(const RankActivations&, const RankActivations&) = default;
};

// `stages` are the p m stage chunks in the order of the model.
RankActivations rank_activations(const std::vector<StageActivations>& stages, const ScheduleShape& shape,
                                 std::int64_t rank);

// The same from what the rank's m stage chunks do. Where they do the same there is a closed form: the most passes are
// alive after the warm-up's last, and a backward pass adds its excess to them first at the first one. Of ranks that do
// the same none is fuller than the first: it has the most passes in flight. Passes for weights are walked through, and
// their ranks are about as full as the first.
RankActivations rank_activations(std::span<const PassActivations> passes, const ScheduleShape& shape,
                                 std::int64_t rank);

bool all_alike(std::span<const PassActivations> passes);

// A moment at which a rank's stage chunks that differ can make it fullest: forward at the step's end, backward at its
// worst.
struct LiveMoment {
  Step step;
  std::vector<std::int64_t> alive;  // passes, by chunk group
  friend bool operator==(const LiveMoment&, const LiveMoment&) = default;
};

// Chunks that do the same, numbered: for each chunk the first that does the same.
using ChunkGroups = std::vector<std::size_t>;

ChunkGroups chunk_groups(std::span<const PassActivations> passes);

// The moments, in order, than which at no earlier or later one as many passes of every group are alive, for forward
// passes and for the backward passes of each group. They depend on no bytes, so that one walk through the schedule
// serves all recomputations.
std::vector<LiveMoment> live_moments(const ChunkGroups& groups, const ScheduleShape& shape,
                                     std::int64_t rank);

// The fullest of the moments, the first of them.
RankActivations rank_activations(std::span<const PassActivations> passes, std::span<const LiveMoment> moments,
                                 std::int64_t rank);

// The same where the rank stores up to `window` passes through its stage chunks in full (StorageWindow), as in
// `full`, and the others as in `checkpointed`.
RankActivations rank_activations(const std::vector<StageActivations>& checkpointed,
                                 const std::vector<StageActivations>& full, std::int64_t window,
                                 const ScheduleShape& shape, std::int64_t rank);

// The largest window whose activations stay within `available`; 0 also when not even checkpoints do.
std::int64_t largest_window(const std::vector<StageActivations>& checkpointed,
                            const std::vector<StageActivations>& full, const ScheduleShape& shape,
                            std::int64_t rank, Bytes available);

}  // namespace headroom

// The activation memory of a pipeline rank at its peak. A walk through the rank's schedule finds the step at which it
// holds the most bytes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "headroom/memory/step.hpp"

namespace headroom {

struct RankActivations {
  std::int64_t pipeline_rank = 0;
  std::int64_t layers = 0;            // that the rank holds
  std::int64_t chunks_in_flight = 0;  // most forward passes alive; m are one microbatch's worth
  Activations at_peak;
  Step peak;       // forward: at its end; backward: while its last checkpoint is recomputed, or during an op
  OpPlace during;  // that op, where the training stack counts such moments
  friend bool operator==(const RankActivations&, const RankActivations&) = default;
};

// `stages` are the p m virtual stages in the order of the model.
RankActivations rank_activations(const std::vector<StageActivations>& stages, const ScheduleShape& shape,
                                 std::int64_t rank);

// The same, computed from what the rank's m virtual stages do. Where all chunks do the same, a closed form replaces the
// walk: the most passes are alive after the last pass of the warm-up, and the first backward pass is the first to add
// its excess to them. Among ranks that do the same, the first one holds the most, since it has the most passes in
// flight. A schedule with passes for weights is always walked through, chunk by chunk; its ranks are about as full as the first.
RankActivations rank_activations(std::span<const PassActivations> passes, const ScheduleShape& shape,
                                 std::int64_t rank);

// The most that a rank's activations take in the memory of its host, of what passes through its virtual stages leave there.
Bytes activations_on_host(const std::vector<PassActivations>& of_chunks, const ScheduleShape& shape,
                          std::int64_t rank);

// Virtual stages of a rank that do the same are a group. By chunk: its group, numbered in the order of their first
// chunks.
using ChunkGroups = std::vector<std::size_t>;

// A moment at which a rank whose virtual stages differ can hold the most. A forward pass is looked at when it ends, a
// backward pass when it holds the most.
struct LiveMoment {
  Step step;
  std::size_t group = 0;  // of the step's chunk
  std::optional<std::size_t> beside =
      {};                           // group of the forward pass beside a backward pass, not among those alive
  std::vector<std::int64_t> alive;  // passes, by group
  friend bool operator==(const LiveMoment&, const LiveMoment&) = default;
};

// The moments that can be the peak, in order. A moment is left out where at another one at least as many passes of
// every group are alive; forward passes are compared with forward passes, backward passes with those of the same group.
// The moments do not depend on any bytes, so that one walk through the schedule serves all recomputations.
std::vector<LiveMoment> live_moments(const ChunkGroups& groups, const ScheduleShape& shape,
                                     std::int64_t rank);

// The peak of the moments, the first where several are. `groups` is what a chunk of each group does.
RankActivations rank_activations(std::span<const PassActivations> groups, std::span<const LiveMoment> moments,
                                 std::int64_t rank);

// The same where the rank stores up to `window` passes through its virtual stages in full (StorageWindow), as in
// `full`, and the others as in `checkpointed`.
RankActivations rank_activations(const std::vector<StageActivations>& checkpointed,
                                 const std::vector<StageActivations>& full, std::int64_t window,
                                 const ScheduleShape& shape, std::int64_t rank);

// The largest window whose activations stay within `available`; 0 also when not even checkpoints do.
std::int64_t largest_window(const std::vector<StageActivations>& checkpointed,
                            const std::vector<StageActivations>& full, const ScheduleShape& shape,
                            std::int64_t rank, Bytes available);

}  // namespace headroom

// Activation memory of a pipeline rank at its peak. A walk through the rank's schedule finds the step at
// which the rank holds the most bytes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "headroom/memory/step.hpp"

namespace headroom {

// Returns the peak of a rank. `stages` are the p m virtual stages in the order of the model.
RankActivations rank_activations(const std::vector<StageActivations>& stages, const ScheduleShape& shape,
                                 std::int64_t rank);

// Returns the peak from what passes through the rank's m virtual stages do. If all virtual stages do the
// same, a closed form replaces the walk: the most passes are in flight after the warm-up, and the first
// backward pass is the first to add its excess to them. Among ranks that do the same, the first holds the
// most, because it has the most passes in flight. A schedule with weight-gradient passes always takes the
// walk, virtual stage by virtual stage; its ranks are about as full as the first.
RankActivations rank_activations(std::span<const PassActivations> passes, const PipelineOrder& order,
                                 std::int64_t rank);

// Returns the largest host memory that a rank's offloaded activations take. `of_chunks` says what passes
// through its virtual stages leave on the host.
Bytes activations_on_host(const std::vector<PassActivations>& of_chunks, const PipelineOrder& order,
                          std::int64_t rank);

// Groups of a rank's virtual stages that do the same: the group of each virtual stage, numbered in the order
// of first appearance.
using ChunkGroups = std::vector<std::size_t>;

// A moment that can be the peak of a rank with different virtual stages. Forward passes count at their end,
// backward passes at their peak.
struct LiveMoment {
  Step step;
  std::size_t group = 0;  // of the step's virtual stage
  // Group of the forward pass that runs beside a backward pass, which `alive` does not count.
  std::optional<std::size_t> beside = {};
  std::vector<std::int64_t> alive;  // passes in flight, by group
  friend bool operator==(const LiveMoment&, const LiveMoment&) = default;
};

// Returns the moments that can be the peak, in order. A moment is dropped if at another one at least as many
// passes of every group are in flight. Forward passes are compared with forward passes, backward passes with
// those of the same group. Moments do not depend on bytes, so one walk through the schedule serves all
// recomputations.
std::vector<LiveMoment> live_moments(const ChunkGroups& groups, const ScheduleShape& shape,
                                     std::int64_t rank);

// Returns the first peak among the moments. `groups` says what passes through a virtual stage of each group
// do.
RankActivations rank_activations(std::span<const PassActivations> groups, std::span<const LiveMoment> moments,
                                 std::int64_t rank);

// Returns the peak of a rank that saves up to `window` passes in full (StorageWindow). Such passes do what
// `full` says, the others what `checkpointed` says.
RankActivations rank_activations(const std::vector<StageActivations>& checkpointed,
                                 const std::vector<StageActivations>& full, std::int64_t window,
                                 const ScheduleShape& shape, std::int64_t rank);

// Returns the largest window whose activations stay within `available`; 0 also if checkpoints alone exceed
// it.
std::int64_t largest_window(const std::vector<StageActivations>& checkpointed,
                            const std::vector<StageActivations>& full, const ScheduleShape& shape,
                            std::int64_t rank, Bytes available);

}  // namespace headroom

// Makespan of a pipeline, without visiting every step if that can be avoided. It equals the makespan of
// replay.hpp, for callers that need no events. A property test checks this with random times.
//
// A transfer blocks its sender, so a pass and its transfer are one span of the rank. The makespan is the
// longest path through spans that wait for each other.
//
// GPipe: every path goes through the last rank.
//
// 1F1B, with F and B the spans of a rank's forward and backward pass: moving to the next rank and staying on
// one both use a forward and a backward span for each microbatch. A longest path therefore stays on one rank
// M for all microbatches except the p - 1 that fill and drain the pipeline:
//
//   max over M of (n - p + M)(F_M + B_M) + max over q >= M of fill(q) + sum over M < k <= q of B_k
//                                        + max over q >= M of drain(q) + sum over M < k <= q of F_k
//   fill(q)  = sum over k <= q of F_k + (p - 1 - q) max over k <= q of F_k,  drain(q) the same of B
//
// with n - p + M >= 0, or >= 1 if both q are greater than M. The formula takes O(p) steps.
//
// Interleaved schedules take a step of a few nanoseconds per pass, 2 n m p in total, until groups of
// microbatches repeat. From then on every group takes as long as the one before, so a larger n adds few
// steps.
#pragma once

#include <span>
#include <vector>

#include "headroom/schedule/replay.hpp"

namespace headroom {

// Time that one microbatch occupies a rank in one virtual stage, transfers included.
struct ChunkSpans {
  Seconds forward;
  Seconds backward;  // includes recomputation and any weight-gradient pass
  friend bool operator==(const ChunkSpans&, const ChunkSpans&) = default;
};

// Returns the spans of a virtual stage, counted along the model. `links` is as in ScheduleTimes. If passes
// overlap, the spans are what no other pass can hide: of a collective at least the share `overlap_loss`
// (hidden_beside).
ChunkSpans chunk_spans(const ScheduleShape& shape, const PassTimes& times, std::span<const Seconds> links,
                       std::int64_t stage, double overlap_loss);

// Returns whether the makespan is a formula. Interleaved schedules take a step per pass. Schedules with
// separate weight-gradient passes need a replay, since the spans above do not tell the passes apart.
constexpr bool has_closed_form(const Strategy& strategy) {
  const ScheduleKind kind = strategy.schedule;
  return !goes_round(kind) && !has_weight_passes(kind) && !overlaps_passes(kind) &&
         !strategy.overlap_expert_all_to_all;
}

// Returns the makespan of a schedule. `spans` are those of the p m virtual stages, in the order of the model.
// Expects a schedule without weight-gradient passes and without overlapping passes.
Seconds makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans);

// Writes the makespans of several pipelines to `longest`. The pipelines run the same schedule, each with its
// own spans. Results are equal to those of makespan() to the last bit. Eight interleaved pipelines take
// little longer than one.
void makespans(const ScheduleShape& shape, std::span<const std::span<const ChunkSpans>> pipelines,
               std::span<Seconds> longest);

// Returns a lower bound of the makespan: for each rank, filling the pipeline up to it, its own work, and
// draining. For interleaved schedules, with F and B the spans of a rank's first chunk and R those of all its
// chunks:
//
//   max over r of n R_r + sum over i < r of (F_i + B_i) + (g - 1)(max over i <= r of F_i - F_r)
//                                                       + (h - 1)(max over i <= r of B_i - B_r)
//
// Rank i runs the first chunk of a group's g microbatches in a row, and rank r runs all its passes but g - 1
// after that. The last group, of h microbatches, is the mirror image when the pipeline drains. If all stages
// are equal except the last, which takes no less, the bound is the makespan; a property test checks this.
//
// In breadth-first schedules, all microbatches are one group. With weight-gradient passes, ranks may step
// their optimizers one after the other. Then only a rank's own work counts (iteration_time), without what
// overlapping passes hide.
Seconds least_makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans);

// Returns the result of replay_schedule(), except for the rounding of sums. Replays the schedule only if
// storage windows make passes differ, or if passes overlap or weights have passes of their own: the functions
// above have no closed form for these.
ReplayedSchedule timed_schedule(const PipelineOrder& order, const ScheduleTimes& times);

}  // namespace headroom

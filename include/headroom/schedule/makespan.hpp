// How long a pipeline takes, without visiting every step where that can be avoided: the makespan of replay.hpp for
// those who need no events. A property test holds the two equal for times that nobody chose.
//
// A transfer keeps its sender, so that a pass and its transfer are one span of the rank: the makespan is the longest
// path through spans that wait for each other.
//
// GPipe: all of it passes through the last rank. 1F1B, with F and B the spans of a rank's forward and backward pass:
// moving from rank to rank and staying on one both use up a forward and a backward span for each microbatch passed,
// so that a longest path stays on one rank M for all microbatches but the p - 1 that fill and drain the pipeline:
//
//   max over M of (n - p + M)(F_M + B_M) + max over q >= M of fill(q) + sum over M < k <= q of B_k
//                                        + max over q >= M of drain(q) + sum over M < k <= q of F_k
//   fill(q)  = sum over k <= q of F_k + (p - 1 - q) max over k <= q of F_k,  drain(q) the same of B
//
// with n - p + M >= 0, and one less where both q lie behind M. That takes O(p) steps; interleaved schedules take a
// step a pass, 2 n m p, of a few nanoseconds, until the groups of microbatches repeat: from there on every group takes what
// the one before took, so that few more steps are taken for any n.
#pragma once

#include <span>
#include <vector>

#include "headroom/schedule/replay.hpp"

namespace headroom {

// How long one microbatch keeps a rank on one virtual stage, transfers included.
struct ChunkSpans {
  Seconds forward;
  Seconds backward;  // with recomputation, and with the pass for weights where there is one
  friend bool operator==(const ChunkSpans&, const ChunkSpans&) = default;
};

// Of a virtual stage, counted along the model. `links` as in ScheduleTimes. Where passes run beside each other: what no
// other pass can hide.
ChunkSpans chunk_spans(const ScheduleShape& shape, const PassTimes& times, std::span<const Seconds> links,
                       std::int64_t stage);

// Whether the makespan is a formula. Of interleaved schedules it takes a step a pass, and a replay where weights have
// passes of their own, which the spans above do not tell apart.
constexpr bool has_closed_form(const Strategy& strategy) {
  const ScheduleKind kind = strategy.schedule;
  return !goes_round(kind) && !has_weight_passes(kind) && !overlaps_passes(kind) &&
         !strategy.overlap_expert_all_to_all;
}

// `spans` are those of the p m virtual stages, in the order of the model. Not for schedules with passes for weights.
Seconds makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans);

// Of several pipelines that run the same schedule, each with spans of its own, to the last bit what makespan() says of
// each; where interleaved, eight of them take little longer than one.
void makespans(const ScheduleShape& shape, std::span<const std::span<const ChunkSpans>> pipelines,
               std::span<Seconds> longest);

// No pipeline of these spans takes less: for each rank, filling the pipeline up to it, its own work, and draining. Where
// interleaved, with F and B the spans of a rank's first chunk and R those of all its chunks:
//
//   max over r of n R_r + sum over i < r of (F_i + B_i) + (g - 1)(max over i <= r of F_i - F_r)
//                                                       + (h - 1)(max over i <= r of B_i - B_r)
//
// since rank i runs the first chunk of a group's g microbatches in a row, and r all its passes but g - 1 after that; so with
// the last group, of h, when the pipeline drains. Where all stages are alike but the last, which takes no less, the makespan
// is no more: a property test holds the two equal.
// Breadth first, all microbatches are one group. Where weights have passes of their own, ranks may step their optimizers one after the
// other, so that only a rank's own work counts (iteration_time), without what passes beside each other hide.
Seconds least_makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans);

// What replay_schedule returns, but for the rounding of sums. Replays where storage windows make passes differ, or
// weights have passes of their own: for those the functions above know no closed form.
ReplayedSchedule timed_schedule(const ScheduleShape& shape, const ScheduleTimes& times);

}  // namespace headroom

// Schedules of chunks that take turns, of passes for weights and of passes beside each other, with times that nobody chose.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "headroom/schedule/makespan.hpp"
#include "schedule/any_schedule.hpp"

namespace headroom::tests {

inline ScheduleShape any_split_shape() {
  using enum ScheduleKind;
  if (between(0, 3) == 0) {  // a forward pass beside the backward pass after it
    const std::int64_t ranks = between(1, 4);
    const bool goes_round = ranks > 1;
    return {.kind = goes_round ? interleaved : one_forward_one_backward,
            .ranks = ranks,
            .chunks = goes_round ? between(2, 4) : 1,
            .microbatches = goes_round ? ranks * between(1, 4) : between(1, 12),
            .in_pairs = true};
  }
  const auto kind = *rc::gen::element(zero_bubble_h1, zero_bubble_h2, zero_bubble_2p, zero_bubble_v, v_half,
                                      v_min, dualpipe_v, dualpipe, looped_bfs);
  const std::int64_t half = between(1, 3);
  switch (kind) {
    case dualpipe: return {kind, 2 * half, 2, 2 * between(2 * half, 10)};
    case dualpipe_v: return {kind, half, 2, between(2 * half, 12)};
    case zero_bubble_v: return {kind, half + 1, 2, between(1, 14)};
    case v_half:
    case v_min: return {kind, between(2, 6), 2, between(1, 20)};
    case looped_bfs: return {kind, between(1, 5), between(2, 4), between(1, 9)};
    default: return {kind, between(1, 6), 1, between(1, 20)};
  }
}

inline ScheduleTimes any_split_times(const ScheduleShape& shape) {
  ScheduleTimes times;
  for (std::int64_t stage = 0; stage < stages_of(shape); ++stage) {
    PassTimes pass{any_seconds(1), any_seconds(0), any_seconds(1)};
    if (has_weight_passes(shape)) pass.backward_weight = any_seconds(1);
    if (overlaps_passes(shape)) {
      pass.forward_exchanges = Seconds(static_cast<double>(between(0, 60)));
      pass.backward_exchanges = Seconds(static_cast<double>(between(0, 60)));
      pass.forward_exchanges = std::min(pass.forward_exchanges, pass.forward);
      pass.backward_exchanges = std::min(pass.backward_exchanges, pass.backward);
    }
    times.stages.push_back(pass);
  }
  if (between(0, 3) > 0) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) times.links.push_back(any_seconds(0));
  }
  times.overlap_loss = 0.25 * static_cast<double>(between(0, 4));
  return times;
}

inline constexpr double slack = 1e-9;  // of sums in another order

inline bool about(Seconds x, Seconds y) {
  return std::abs(x.count() - y.count()) <= slack * (1 + std::abs(y.count()));
}

inline ScheduleTimes all_alike(const ScheduleShape& shape, double forward, double backward, double weight) {
  return {
      .stages = std::vector<PassTimes>(
          static_cast<std::size_t>(stages_of(shape)),
          {.forward = Seconds(forward), .backward = Seconds(backward), .backward_weight = Seconds(weight)}),
      .links = {},
      .windows = {}};
}

inline Seconds longest_span(const ReplayedSchedule& replayed) {
  Seconds longest;
  for (const ReplayedRank& rank : replayed.ranks) longest = std::max(longest, rank.span);
  return longest;
}

}  // namespace headroom::tests

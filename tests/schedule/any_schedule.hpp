// Schedules and times that nobody chose, for property tests. All times are small whole numbers, so that sums are exact
// in any order and == is the right comparison.
#pragma once

#include <rapidcheck.h>

#include "headroom/schedule/replay.hpp"

namespace headroom::tests {

inline std::int64_t between(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }

// Now and then one is far longer than the others.
inline Seconds any_seconds(std::int64_t low) {
  return Seconds(static_cast<double>(between(0, 9) == 0 ? between(low, 60) : between(low, 9)));
}

// Interleaved, with groups of as many microbatches as nobody chose.
inline ScheduleShape any_in_groups(std::int64_t ranks, std::int64_t most_microbatches) {
  const std::int64_t microbatches = between(ranks, most_microbatches);
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = ranks; size <= microbatches; ++size) {
    if (is_group_size(size, ranks, microbatches)) sizes.push_back(size);
  }
  return {ScheduleKind::interleaved, ranks, between(1, 4), microbatches, *rc::gen::elementOf(sizes)};
}

inline ScheduleShape any_shape(std::int64_t most_ranks) {
  const auto kind = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                                      ScheduleKind::interleaved);
  const std::int64_t ranks = between(1, most_ranks);
  if (kind == ScheduleKind::interleaved && between(0, 1) == 0) return any_in_groups(ranks, 4 * ranks);
  if (kind == ScheduleKind::interleaved) return {kind, ranks, between(1, 4), ranks * between(1, 4)};
  return {kind, ranks, 1, between(1, 24)};
}

// Without windows.
inline ScheduleTimes any_times(const ScheduleShape& shape) {
  ScheduleTimes times;
  for (std::int64_t stage = 0; stage < shape.ranks * shape.chunks; ++stage) {
    times.stages.push_back({any_seconds(1), any_seconds(0), any_seconds(1)});
  }
  if (between(0, 3) > 0) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) times.links.push_back(any_seconds(0));
  }
  return times;
}

}  // namespace headroom::tests

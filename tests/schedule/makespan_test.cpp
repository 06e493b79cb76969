// Makespans in closed form against the replay of every step, for times that nobody chose: small whole numbers, so that
// sums are exact in any order and == is the right comparison.
#include "headroom/schedule/makespan.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace headroom {
namespace {

std::int64_t between(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }

// Now and then one stage is far slower than the others.
Seconds any_seconds(std::int64_t low) {
  return Seconds(static_cast<double>(between(0, 9) == 0 ? between(low, 60) : between(low, 9)));
}

ScheduleShape any_shape() {
  const auto kind = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                                      ScheduleKind::interleaved);
  const std::int64_t ranks = between(1, 9);
  if (kind == ScheduleKind::interleaved) return {kind, ranks, between(1, 4), ranks * between(1, 4)};
  return {kind, ranks, 1, between(1, 24)};
}

ScheduleTimes any_times(const ScheduleShape& shape) {
  ScheduleTimes times;
  for (std::int64_t stage = 0; stage < shape.ranks * shape.chunks; ++stage) {
    times.stages.push_back({any_seconds(1), any_seconds(0), any_seconds(1)});
  }
  if (between(0, 3) > 0) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) times.links.push_back(any_seconds(0));
  }
  return times;
}

TEST_CASE("what a schedule takes is what its replay takes, to the last bit") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_shape();
    const ScheduleTimes times = any_times(shape);
    const ReplayedSchedule replayed = replay_schedule(shape, times);
    RC_CLASSIFY(shape.microbatches < shape.ranks, "fewer microbatches than ranks");
    RC_ASSERT(timed_schedule(shape, times) == replayed);
  }));
}

TEST_CASE("windows are replayed") {
  const ScheduleShape shape{ScheduleKind::one_forward_one_backward, 2, 1, 4};
  const PassTimes pass{Seconds(1), Seconds(1), Seconds(2)};
  const ScheduleTimes times{.stages = {pass, pass}, .windows = {1, 1}};
  CHECK(timed_schedule(shape, times) == replay_schedule(shape, times));
}

TEST_CASE("no schedule takes less than the least makespan") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_shape();
    const ScheduleTimes times = any_times(shape);
    std::vector<ChunkSpans> spans;
    for (std::int64_t stage = 0; stage < std::ssize(times.stages); ++stage) {
      const auto i = static_cast<std::size_t>(stage);
      spans.push_back(chunk_spans(shape, times.stages[i], times.links, stage));
    }
    RC_ASSERT(least_makespan(shape, spans) <= makespan(shape, spans));
  }));
}

TEST_CASE("stages alike: (n m + p - 1) passes one after the other") {
  const std::vector<ChunkSpans> alike(12, {Seconds(1), Seconds(2)});
  CHECK(makespan({ScheduleKind::interleaved, 4, 3, 8}, alike) == Seconds(3 * (8 * 3 + 4 - 1)));
  CHECK(makespan({ScheduleKind::gpipe, 12, 1, 8}, alike) == Seconds(3 * (8 + 12 - 1)));
  CHECK(makespan({ScheduleKind::one_forward_one_backward, 12, 1, 8}, alike) == Seconds(3 * (8 + 12 - 1)));
}

}  // namespace
}  // namespace headroom

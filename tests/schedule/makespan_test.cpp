// Makespans in closed form against the replay of every step, for times that nobody chose.
#include "headroom/schedule/makespan.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "schedule/any_schedule.hpp"

namespace headroom {
namespace {

using tests::any_seconds;
using tests::any_times;
using tests::between;

TEST_CASE("what a schedule takes is what its replay takes, to the last bit") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_shape(9);
    const ScheduleTimes times = any_times(shape);
    const ReplayedSchedule replayed = replay_schedule(shape, times);
    RC_CLASSIFY(shape.microbatches < shape.ranks, "fewer microbatches than ranks");
    RC_ASSERT(timed_schedule(shape, times) == replayed);
  }));
}

TEST_CASE("several pipelines at once take what each takes alone, to the last bit") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_shape(9);
    std::vector<std::vector<ChunkSpans>> pipelines(static_cast<std::size_t>(between(0, 19)));
    for (std::vector<ChunkSpans>& spans : pipelines) {
      for (std::int64_t stage = 0; stage < shape.ranks * shape.chunks; ++stage) {
        // Thirds, so that sums round.
        spans.push_back({any_seconds(1) / 3, any_seconds(1) / 3});
      }
    }
    const std::vector<std::span<const ChunkSpans>> views(pipelines.begin(), pipelines.end());
    std::vector<Seconds> together(views.size());
    makespans(shape, views, together);
    for (std::size_t i = 0; i < views.size(); ++i) RC_ASSERT(together[i] == makespan(shape, views[i]));
  }));
}

TEST_CASE("groups that repeat are counted, to the last bit of the replay") {
  CHECK(rc::check([] {
    const std::int64_t ranks = between(1, 6);
    ScheduleShape shape = tests::any_in_groups(ranks, 8 * ranks);
    if (between(0, 1) == 0) shape.microbatches *= between(2, 9);  // of which a period may be many groups
    if (!is_group_size(group_size(shape), ranks, shape.microbatches)) return;
    ScheduleTimes times = any_times(shape);
    // Nearly alike, so that the slowest rank may show late.
    if (between(0, 1) == 0) {
      for (PassTimes& pass : times.stages) {
        pass = {Seconds(static_cast<double>(between(200, 203))), Seconds(0),
                Seconds(static_cast<double>(between(400, 403)))};
      }
    }
    RC_ASSERT(timed_schedule(shape, times) == replay_schedule(shape, times));
  }));
}

TEST_CASE("of times that round, a schedule takes what its replay does, but for rounding") {
  CHECK(rc::check([] {
    const std::int64_t ranks = between(1, 6);
    const ScheduleShape shape{ScheduleKind::interleaved, ranks, between(1, 4), ranks * between(4, 40)};
    ScheduleTimes times = any_times(shape);
    for (PassTimes& pass : times.stages)
      pass = {pass.forward / 3.0, pass.recompute / 7.0, pass.backward / 11.0};
    const double replayed = replay_schedule(shape, times).makespan.count();
    RC_ASSERT(std::abs(timed_schedule(shape, times).makespan.count() - replayed) <= 1e-11 * replayed);
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
    const ScheduleShape shape = tests::any_shape(9);
    const ScheduleTimes times = any_times(shape);
    std::vector<ChunkSpans> spans;
    for (std::int64_t stage = 0; stage < std::ssize(times.stages); ++stage) {
      const auto i = static_cast<std::size_t>(stage);
      spans.push_back(chunk_spans(shape, times.stages[i], times.links, stage, times.overlap_loss));
    }
    RC_ASSERT(least_makespan(shape, spans) <= makespan(shape, spans));
  }));
}

TEST_CASE("interleaved stages alike but for a longer last one take the least makespan") {
  CHECK(rc::check([] {
    const std::int64_t ranks = between(1, 9);
    const ScheduleShape shape{ScheduleKind::interleaved, ranks, between(2, 4), ranks * between(1, 5)};
    std::vector<ChunkSpans> spans(static_cast<std::size_t>(ranks * shape.chunks),
                                  {any_seconds(1), any_seconds(1)});
    spans.back().forward += any_seconds(0);
    spans.back().backward += any_seconds(0);
    const double rounding = 2e-9;  // least_makespan() leaves half of it
    RC_ASSERT(makespan(shape, spans) <= (1 + rounding) * least_makespan(shape, spans));
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

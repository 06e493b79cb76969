// Schedules small enough to be drawn on paper.
#include "headroom/schedule/replay.hpp"

#include <doctest/doctest.h>

#include "headroom/schedule/window.hpp"

namespace headroom {
namespace {

constexpr auto f1b1 = ScheduleKind::one_forward_one_backward;

std::vector<PassTimes> alike(std::int64_t stages, const PassTimes& times) {
  return std::vector<PassTimes>(static_cast<std::size_t>(stages), times);
}

PassTimes pass_times(double forward, double recompute, double backward) {
  return {Seconds(forward), Seconds(recompute), Seconds(backward)};
}

std::vector<ReplayedStep> events_of_rank(const ScheduleShape& shape, const ScheduleTimes& times,
                                         std::int64_t rank) {
  std::vector<ReplayedStep> events;
  replay_schedule(shape, times, [&](const ReplayedStep& event) {
    if (event.rank == rank) events.push_back(event);
  });
  return events;
}

std::vector<double> starts(const std::vector<ReplayedStep>& events) {
  std::vector<double> times;
  for (const ReplayedStep& event : events) times.push_back(event.start.count());
  return times;
}

}  // namespace

TEST_CASE("replay: one rank does one thing after the other and never waits") {
  const ReplayedSchedule replay = replay_schedule(
      ScheduleShape{.microbatches = 3}, {.stages = {pass_times(1, 0.5, 2)}, .links = {Seconds(100)}});
  CHECK(replay.makespan == Seconds(10.5));
  CHECK(replay.ranks == std::vector<ReplayedRank>{
                            {.forward = Seconds(3), .recompute = Seconds(1.5), .backward = Seconds(6)}});
}

TEST_CASE("replay: 1F1B on two ranks") {
  // rank 0: F0 F1 .  .  B0 B0 .  .  B1 B1      F takes 1, B takes 2
  // rank 1: .  F0 B0 B0 F1 B1 B1
  const ScheduleShape shape{f1b1, 2, 1, 2};
  const ScheduleTimes times{.stages = alike(2, pass_times(1, 0, 2))};
  CHECK(starts(events_of_rank(shape, times, 0)) == std::vector<double>{0, 1, 4, 7});
  CHECK(starts(events_of_rank(shape, times, 1)) == std::vector<double>{1, 2, 4, 5});
  const ReplayedSchedule replay = replay_schedule(shape, times);
  CHECK(replay.makespan == Seconds(9));
  CHECK(replay.ranks[0].idle == Seconds(3));
  CHECK(replay.ranks[1].idle == Seconds(3));
}

TEST_CASE("replay: GPipe runs every forward pass first") {
  const ScheduleShape shape{ScheduleKind::gpipe, 2, 1, 3};
  const ScheduleTimes times{.stages = alike(2, pass_times(1, 0, 2))};
  CHECK(starts(events_of_rank(shape, times, 0)) == std::vector<double>{0, 1, 2, 6, 8, 10});
  CHECK(starts(events_of_rank(shape, times, 1)) == std::vector<double>{1, 2, 3, 4, 6, 8});
  CHECK(replay_schedule(shape, times).makespan == Seconds(12));
}

TEST_CASE("replay: an interleaved schedule has half the bubble with two chunks a rank") {
  // rank 0: F00 F01 F10 F11 .   B10 .   B11 B00 B01     F(chunk)(microbatch)
  // rank 1: .   F00 F01 F10 B10 F11 B11 B00 B01
  const ScheduleShape shape{ScheduleKind::interleaved, 2, 2, 2};
  const ScheduleTimes times{.stages = alike(4, pass_times(1, 0, 1))};
  CHECK(starts(events_of_rank(shape, times, 0)) == std::vector<double>{0, 1, 2, 3, 5, 7, 8, 9});
  CHECK(starts(events_of_rank(shape, times, 1)) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(replay_schedule(shape, times).makespan == Seconds(10));
  CHECK(replay_schedule(ScheduleShape{f1b1, 2, 1, 2}, {.stages = alike(2, pass_times(2, 0, 2))}).makespan ==
        Seconds(12));
}

TEST_CASE("replay: the slowest stage sets the pace") {
  const ScheduleShape shape{f1b1, 3, 1, 10};
  ScheduleTimes times{.stages = alike(3, pass_times(1, 0, 2))};
  times.stages[1] = pass_times(3, 0, 5);
  // 1 until the slow stage begins, ten times 8 there, 2 after its last backward pass.
  CHECK(replay_schedule(shape, times).makespan == Seconds(1 + 10 * 8 + 2));
}

TEST_CASE("replay: a transfer keeps its sender and delays its receiver") {
  // rank 0: F0 F0 >> . . . . . . B0 B0     one microbatch: 2 + 1, 2 + 2 (no transfer at the turn) + 1, 2
  const ScheduleShape shape{f1b1, 2, 1, 1};
  const ScheduleTimes times{.stages = alike(2, pass_times(2, 0, 2)), .links = {Seconds(1), Seconds(100)}};
  const ReplayedSchedule replay = replay_schedule(shape, times);
  CHECK(replay.makespan == Seconds(10));
  CHECK(replay.ranks[0].sending == Seconds(1));
  CHECK(replay.ranks[0].idle == Seconds(5));
  CHECK(replay.ranks[1].sending == Seconds(1));
  CHECK(replay.ranks[1].idle == Seconds(5));
}

TEST_CASE("replay: from the last rank's chunk to the first rank's next one goes the last link") {
  const ScheduleShape shape{ScheduleKind::interleaved, 2, 2, 2};
  const ScheduleTimes times{.stages = alike(4, pass_times(1, 0, 1)), .links = {Seconds(0), Seconds(10)}};
  Seconds first_rank;
  Seconds last_rank;
  replay_schedule(shape, times, [&](const ReplayedStep& event) {
    (event.rank == 0 ? first_rank : last_rank) += event.sent - event.end;
  });
  CHECK(last_rank == Seconds(20));   // forward of chunk 0, twice
  CHECK(first_rank == Seconds(20));  // backward of chunk 1, twice
}

TEST_CASE("replay: recomputation comes before the backward pass") {
  const std::vector<ReplayedStep> events =
      events_of_rank({.microbatches = 1}, {.stages = {pass_times(1, 0.5, 2)}}, 0);
  REQUIRE(events.size() == 2);
  const Step backward{Pass::backward, 0, 0};
  CHECK(events[0] == ReplayedStep{0, {}, false, Seconds(0), Seconds(0), Seconds(1), Seconds(1)});
  CHECK(events[1] == ReplayedStep{0, backward, false, Seconds(1), Seconds(1.5), Seconds(3.5), Seconds(3.5)});
}

TEST_CASE("K22 appendix C: the window moves as backward passes free memory") {
  // Four passes in flight on rank 0, two of them stored: 0, 1, then 4 when 0 is gone, 5 when 1 is gone ...
  std::vector<std::int64_t> stored;
  visit_windowed_steps(ScheduleShape{f1b1, 4, 1, 12}, 0, 2, Walk::every_step,
                       [&](const Step& step, bool in_full) {
                         if (step.pass == Pass::forward && in_full) stored.push_back(step.microbatch);
                       });
  CHECK(stored == std::vector<std::int64_t>{0, 1, 4, 5, 8, 9});
}

TEST_CASE("K22 appendix C: a window as large as what is in flight leaves nothing to recompute") {
  const ScheduleShape shape{f1b1, 4, 1, 12};
  ScheduleTimes times{.stages = alike(4, pass_times(1, 1, 2)), .windows = {4, 3, 2, 0}};
  const ReplayedSchedule replay = replay_schedule(shape, times);
  CHECK(replay.ranks[0].recompute == Seconds(0));
  CHECK(replay.ranks[0].stored_forwards == 12);
  CHECK(replay.ranks[2].recompute == Seconds(0));
  CHECK(replay.ranks[3].recompute == Seconds(12));
  CHECK(replay.ranks[3].stored_forwards == 0);
  times.windows = {4, 3, 2, 1};
  CHECK(replay_schedule(shape, times).makespan == Seconds((12 + 4 - 1) * (1 + 2)));
}

}  // namespace headroom

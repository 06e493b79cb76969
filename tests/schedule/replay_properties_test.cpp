// Replays of schedules with times that nobody chose, against a plain simulation and against what must hold of any.
#include <algorithm>
#include <map>
#include <tuple>

#include <doctest/doctest.h>

#include "schedule/any_schedule.hpp"

namespace headroom {
namespace {

using tests::any_seconds;
using tests::between;

ScheduleTimes any_windowed_times(const ScheduleShape& shape) {
  ScheduleTimes times = tests::any_times(shape);
  if (between(0, 1) == 1) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank)
      times.windows.push_back(between(0, shape.ranks + 2));
  }
  return times;
}

using Key = std::tuple<Pass, std::int64_t, std::int64_t>;  // pass, stage, microbatch

// A step with all it needs to be timed: nothing here knows of queues or of waking ranks up.
struct Node {
  Key key;
  std::int64_t rank = 0;
  bool stored = false;
  Seconds work;
  Seconds transfer;
  Seconds start;
  [[nodiscard]] Seconds sent() const { return start + work + transfer; }
};

// The same schedule by brute force: every step starts at 0, and is moved behind its rank's previous step and behind
// the one that makes its input, until nothing moves.
std::map<Key, Node> brute_force(const ScheduleShape& shape, const ScheduleTimes& times) {
  const std::int64_t last = shape.ranks * shape.chunks - 1;
  std::vector<std::vector<Node>> ranks(static_cast<std::size_t>(shape.ranks));
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    std::map<std::pair<std::int64_t, std::int64_t>, bool> alive;  // chunk, microbatch: whether stored
    for (const Step& step : steps_of_rank(shape, rank)) {
      const std::int64_t stage = stage_of(shape, rank, step.chunk);
      const PassTimes& pass = times.stages[static_cast<std::size_t>(stage)];
      Node node{.key = {step.pass, stage, step.microbatch}, .rank = rank};
      const std::pair name{step.chunk, step.microbatch};
      if (step.pass == Pass::forward) {
        const auto full =
            std::count_if(alive.begin(), alive.end(), [](const auto& one) { return one.second; });
        node.stored = !times.windows.empty() && full < times.windows[static_cast<std::size_t>(rank)];
        alive[name] = node.stored;
        node.work = pass.forward;
      } else {
        node.stored = alive.at(name);
        alive.erase(name);
        node.work = node.stored ? pass.backward : pass.recompute + pass.backward;
      }
      const bool sends = step.pass == Pass::forward ? stage != last : stage != 0;
      if (sends && shape.ranks > 1 && !times.links.empty()) {
        // Forward to the next rank, backward to the one before.
        const std::int64_t link = step.pass == Pass::forward ? rank : (rank + shape.ranks - 1) % shape.ranks;
        node.transfer = times.links[static_cast<std::size_t>(link)];
      }
      ranks[static_cast<std::size_t>(rank)].push_back(node);
    }
  }

  std::map<Key, Node> nodes;
  for (const auto& steps : ranks) {
    for (const Node& node : steps) nodes[node.key] = node;
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& steps : ranks) {
      Seconds free;
      for (const Node& step : steps) {
        const auto [pass, stage, microbatch] = step.key;
        Node& node = nodes[step.key];
        Seconds start = free;
        if (pass == Pass::forward && stage > 0) {
          start = std::max(start, nodes[{pass, stage - 1, microbatch}].sent());
        } else if (pass == Pass::backward) {
          const Key input{stage == last ? Pass::forward : pass, stage == last ? stage : stage + 1,
                          microbatch};
          start = std::max(start, nodes[input].sent());
        }
        moved = moved || start != node.start;
        node.start = start;
        free = node.sent();
      }
    }
  }
  return nodes;
}

Key key_of(const ScheduleShape& shape, const ReplayedStep& event) {
  return {event.step.pass, stage_of(shape, event.rank, event.step.chunk), event.step.microbatch};
}

}  // namespace

TEST_CASE("replay: every event is where a simulation by brute force has it") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_shape(6);
    const ScheduleTimes times = any_windowed_times(shape);
    std::map<Key, Node> expected = brute_force(shape, times);
    Seconds makespan;
    for (const auto& [key, node] : expected) makespan = std::max(makespan, node.sent());
    const ReplayedSchedule replay = replay_schedule(shape, times, [&](const ReplayedStep& event) {
      const auto found = expected.find(key_of(shape, event));
      RC_ASSERT(found != expected.end());  // each step once
      const Node& node = found->second;
      RC_ASSERT(event.start == node.start);
      RC_ASSERT(event.end == node.start + node.work);
      RC_ASSERT(event.sent == node.sent());
      RC_ASSERT(event.stored == node.stored);
      expected.erase(found);
    });
    RC_ASSERT(expected.empty());
    RC_ASSERT(replay.makespan == makespan);
  }));
}

TEST_CASE("replay: no pass starts before its input has arrived, no rank does two things at once") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_shape(6);
    const std::int64_t last = shape.ranks * shape.chunks - 1;
    std::map<Key, Seconds> sent;
    std::map<std::int64_t, Seconds> free;
    replay_schedule(shape, any_windowed_times(shape), [&](const ReplayedStep& event) {
      const auto [pass, stage, microbatch] = key_of(shape, event);
      RC_ASSERT(event.start >= free[event.rank]);
      RC_ASSERT(event.start <= event.recompute_end);
      RC_ASSERT(event.recompute_end < event.end);
      RC_ASSERT(event.end <= event.sent);
      // at() throws for what has not been visited yet: input before output.
      if (pass == Pass::forward && stage > 0)
        RC_ASSERT(event.start >= sent.at({pass, stage - 1, microbatch}));
      if (pass == Pass::backward) RC_ASSERT(event.start >= sent.at({Pass::forward, stage, microbatch}));
      if (pass == Pass::backward && stage < last) {
        RC_ASSERT(event.start >= sent.at({pass, stage + 1, microbatch}));
      }
      free[event.rank] = event.sent;
      sent[{pass, stage, microbatch}] = event.sent;
    });
  }));
}

TEST_CASE("replay: work, transfers and waiting are all of a rank's time") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_shape(6);
    const ScheduleTimes times = any_windowed_times(shape);
    const ReplayedSchedule replay = replay_schedule(shape, times);
    for (const ReplayedRank& rank : replay.ranks) {
      RC_ASSERT(rank.idle >= Seconds(0));
      RC_ASSERT(busy(rank) + rank.sending + rank.idle == replay.makespan);
    }
  }));
}

TEST_CASE("replay: looking at the events does not change them") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_shape(6);
    const ScheduleTimes times = any_windowed_times(shape);
    RC_ASSERT(replay_schedule(shape, times) == replay_schedule(shape, times, [](const ReplayedStep&) {}));
  }));
}

TEST_CASE("replay: uniform stages without transfers take (n m + p - 1) passes") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_shape(6);
    const PassTimes stage{any_seconds(0), any_seconds(0), any_seconds(0)};
    const ScheduleTimes times{
        .stages = std::vector<PassTimes>(static_cast<std::size_t>(shape.ranks * shape.chunks), stage)};
    const auto passes = static_cast<double>(shape.microbatches * shape.chunks + shape.ranks - 1);
    RC_ASSERT(replay_schedule(shape, times).makespan == passes * total(stage));
  }));
}

}  // namespace headroom

// Backward passes in two, for inputs and for weights: ZB-H1 [arXiv 2401.10241], on pipelines small enough to be drawn.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/schedule/makespan.hpp"

namespace headroom {
namespace {

constexpr ScheduleShape zb_h1(std::int64_t ranks, std::int64_t microbatches) {
  return {.kind = ScheduleKind::zero_bubble_h1, .ranks = ranks, .microbatches = microbatches};
}

std::string order_with_weights(const ScheduleShape& shape, std::int64_t rank) {
  std::string text;
  for (const Step& step : steps_of_rank(shape, rank)) {
    const char* pass = step.pass == Pass::forward ? "F" : step.pass == Pass::backward ? "B" : "W";
    text += (text.empty() ? "" : " ") + (pass + std::to_string(step.microbatch));
  }
  return text;
}

ScheduleTimes alike(std::int64_t ranks, double forward, double backward, double weight) {
  return {
      .stages = std::vector<PassTimes>(
          static_cast<std::size_t>(ranks),
          {.forward = Seconds(forward), .backward = Seconds(backward), .backward_weight = Seconds(weight)}),
      .links = {},
      .windows = {}};
}

TEST_CASE("ZB-H1: figure 2, the first rank at once and each later one a pass for weights behind") {
  const ScheduleShape shape = zb_h1(4, 6);
  CHECK(order_with_weights(shape, 0) == "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 B3 W3 B4 W4 B5 W5");
  CHECK(order_with_weights(shape, 1) == "F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 B4 W3 B5 W4 W5");
  CHECK(order_with_weights(shape, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 W3 W4 W5");
}

// Where a pass for weights is the longest, the others set the pace.
TEST_CASE("ZB-H1: the bubble is (p - 1)(F + B - W), where 1F1B has (p - 1)(F + B + W)") {
  CHECK(rc::check([] {
    const std::int64_t ranks = *rc::gen::inRange(1, 10);
    const ScheduleShape shape = zb_h1(ranks, ranks + *rc::gen::inRange(0, 20));
    const auto seconds = [] { return static_cast<double>(*rc::gen::inRange(1, 10)); };
    const double forward = seconds();
    const double backward = seconds();
    const double weight = seconds();
    const double work = static_cast<double>(shape.microbatches) * (forward + backward + weight);
    const double others = static_cast<double>(ranks - 1);
    const double bubble = others * std::max({forward + backward - weight, forward, backward});
    RC_CLASSIFY(weight <= std::min(forward, backward), "as in the paper");
    const ScheduleTimes times = alike(ranks, forward, backward, weight);
    const ReplayedSchedule apart = replay_schedule(shape, times);
    RC_ASSERT(apart.makespan == Seconds(work + bubble));
    for (const ReplayedRank& rank : apart.ranks) {
      RC_ASSERT(busy(rank) == Seconds(work));
      RC_ASSERT(rank.idle == Seconds(bubble));
    }
    RC_ASSERT(timed_schedule(shape, times) == apart);
    ScheduleShape merged = shape;
    merged.kind = ScheduleKind::one_forward_one_backward;
    const double one_pass = backward + weight;
    RC_ASSERT(replay_schedule(merged, alike(ranks, forward, one_pass, 0)).makespan ==
              Seconds(work + others * (forward + one_pass)));
  }));
}

TEST_CASE("ZB-H1: no more passes are in flight on any rank than 1F1B has on the first") {
  for (std::int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      std::int64_t held = 0;
      std::int64_t most = 0;
      visit_steps(zb_h1(ranks, 4 * ranks), rank, [&](const Step& step) {
        if (step.pass == Pass::forward) ++held;
        if (step.pass == Pass::backward_weight) --held;
        most = std::max(most, held);
      });
      CHECK(held == 0);
      CHECK(most == ranks);
    }
  }
}

TEST_CASE("weight passes: each follows its backward pass, and waits for nothing else") {
  CHECK(rc::check([] {
    const ScheduleShape shape = zb_h1(*rc::gen::inRange(1, 7), *rc::gen::inRange(1, 20));
    ScheduleTimes times = alike(shape.ranks, 1, 1, 1);
    for (PassTimes& stage : times.stages) {
      stage = {.forward = Seconds(*rc::gen::inRange(1, 9)),
               .recompute = Seconds(*rc::gen::inRange(0, 9)),
               .backward = Seconds(*rc::gen::inRange(1, 9)),
               .backward_weight = Seconds(*rc::gen::inRange(1, 9))};
    }
    std::vector<std::vector<Seconds>> backward_ends(static_cast<std::size_t>(shape.ranks));
    std::vector<Seconds> free(static_cast<std::size_t>(shape.ranks));
    const ReplayedSchedule replayed = replay_schedule(shape, times, [&](const ReplayedStep& event) {
      const auto rank = static_cast<std::size_t>(event.rank);
      const PassTimes& stage = times.stages[rank];
      if (event.step.pass == Pass::backward) {
        RC_ASSERT(event.end - event.start == stage.recompute + stage.backward);
        backward_ends[rank].push_back(event.end);
      }
      if (event.step.pass == Pass::backward_weight) {
        RC_ASSERT(event.end - event.start == stage.backward_weight);
        RC_ASSERT(event.start == free[rank]);
        RC_ASSERT(event.start >= backward_ends[rank].at(static_cast<std::size_t>(event.step.microbatch)));
      }
      free[rank] = event.sent;
    });
    for (std::size_t rank = 0; rank < replayed.ranks.size(); ++rank) {
      const ReplayedRank& each = replayed.ranks[rank];
      RC_ASSERT(busy(each) == static_cast<double>(shape.microbatches) * total(times.stages[rank]));
      RC_ASSERT(busy(each) + each.idle == replayed.makespan);
    }
  }));
}

}  // namespace
}  // namespace headroom

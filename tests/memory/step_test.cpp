// Memory around every step, and the microbatch window of K22 appendix C.
#include "headroom/memory/step.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/memory/rank.hpp"

namespace headroom {
namespace {

constexpr auto f1b1 = ScheduleKind::one_forward_one_backward;

// Four layers: checkpoints of 1 byte each that make 10 again, or 11 bytes kept.
const StageActivations checkpoints{.layers = {{4, 1_B, 10_B}}};
const StageActivations everything{.layers = {{4, 11_B, 0_B}}};

std::vector<StageActivations> alike(const ScheduleShape& shape, const StageActivations& stage) {
  return std::vector<StageActivations>(static_cast<std::size_t>(shape.ranks * shape.chunks), stage);
}

ScheduleShape any_step_shape() {
  const auto kind = *rc::gen::element(ScheduleKind::gpipe, f1b1, ScheduleKind::interleaved);
  const std::int64_t ranks = *rc::gen::inRange(1, 7);
  if (kind == ScheduleKind::interleaved)
    return {kind, ranks, *rc::gen::inRange(1, 5), ranks * *rc::gen::inRange(1, 10)};
  return {kind, ranks, 1, *rc::gen::inRange(1, 40)};
}

}  // namespace

TEST_CASE("memory: a checkpointed pass keeps little and is made again, layer by layer") {
  const auto steps = activations_by_step({checkpoints}, ScheduleShape{.microbatches = 1}, 0);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0] == StepActivations{{}, false, {.layers = 4_B}, {.layers = 4_B}});
  const Step backward{Pass::backward, 0, 0};
  CHECK(steps[1] == StepActivations{backward, false, {.layers = 4_B, .recompute = 10_B}, {}});
}

TEST_CASE("memory: nothing is left after the last step, whatever the schedule and the window") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_step_shape();
    const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, shape.ranks);
    const auto steps = activations_by_step(alike(shape, checkpoints), alike(shape, everything),
                                           *rc::gen::inRange(0, 20), shape, rank);
    RC_ASSERT(std::ssize(steps) == 2 * shape.microbatches * shape.chunks);
    RC_ASSERT(steps.back().after == Activations{});
    for (const StepActivations& step : steps) RC_ASSERT(total(step.highest) >= total(step.after));
  }));
}

TEST_CASE("K22 appendix C: without a window all passes are checkpointed, with a large one none is") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_step_shape();
    const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, shape.ranks);
    const auto few = alike(shape, checkpoints);
    const auto all = alike(shape, everything);
    RC_ASSERT(rank_activations(few, all, 0, shape, rank) == rank_activations(few, shape, rank));
    const std::int64_t in_flight = chunks_in_flight(shape, rank);
    RC_ASSERT(rank_activations(few, all, in_flight, shape, rank) == rank_activations(all, shape, rank));
  }));
}

TEST_CASE("K22 appendix C: the first rank stores one of three microbatches in full") {
  const ScheduleShape shape{f1b1, 3, 1, 9};
  const RankActivations peak =
      rank_activations(alike(shape, checkpoints), alike(shape, everything), 1, shape, 0);
  // One in full, two checkpoints, and the recomputation of one of them.
  CHECK(peak.at_peak == Activations{.layers = 44_B + 4_B + 4_B, .recompute = 10_B});
  CHECK(peak.peak == Step{Pass::backward, 1, 0});
  CHECK(peak.chunks_in_flight == 3);
}

TEST_CASE("K22 appendix C: skipping repetitions changes neither the peak nor its step") {
  CHECK(rc::check([] {
    ScheduleShape shape = any_step_shape();
    shape.microbatches += *rc::gen::inRange<std::int64_t>(0, 40 * shape.ranks);
    if (shape.kind == ScheduleKind::interleaved) {
      shape.group = *rc::gen::inRange<std::int64_t>(shape.ranks, 2 * shape.ranks + 1);
      RC_PRE(is_group_size(shape.group, shape.ranks, shape.microbatches));
    }
    shape.in_pairs = shape.kind != ScheduleKind::gpipe && *rc::gen::arbitrary<bool>();
    const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, shape.ranks);
    const std::int64_t window = *rc::gen::inRange<std::int64_t>(1, chunks_in_flight(shape, rank) + 2);
    auto few = alike(shape, checkpoints);
    auto all = alike(shape, everything);
    for (std::size_t i = 0; i < all.size(); ++i)
      few[i].layers.front().count = all[i].layers.front().count = *rc::gen::inRange(1, 6);
    Bytes highest(-1);
    Step peak;
    for (const StepActivations& step : activations_by_step(few, all, window, shape, rank)) {
      if (total(step.highest) <= highest) continue;
      highest = total(step.highest);
      peak = step.step;
    }
    const RankActivations found = rank_activations(few, all, window, shape, rank);
    RC_ASSERT(total(found.at_peak) == highest);
    RC_ASSERT(found.peak == peak);
  }));
}

TEST_CASE("K22 appendix C: a walk without repetitions does not grow with the microbatches") {
  for (const ScheduleShape& shape :
       {ScheduleShape{f1b1, 4, 1, 4000}, ScheduleShape{ScheduleKind::interleaved, 4, 2, 4000}}) {
    std::int64_t steps = 0;
    visit_windowed_steps(shape, 0, 2, Walk::without_repetitions, [&](const Step&, bool) { ++steps; });
    CHECK(steps < 1000);
  }
}

TEST_CASE("K22 appendix C: the largest window is the last that fits") {
  const ScheduleShape shape{f1b1, 3, 1, 9};
  const auto few = alike(shape, checkpoints);
  const auto all = alike(shape, everything);
  CHECK(largest_window(few, all, shape, 0, 62_B) == 1);
  CHECK(largest_window(few, all, shape, 0, 61_B) == 0);
  CHECK(largest_window(few, all, shape, 0, 0_B) == 0);
  CHECK(largest_window(few, all, shape, 0, 132_B) == 3);
  CHECK(largest_window(few, all, shape, 0, 131_B) == 2);
  CHECK(largest_window(few, all, shape, 2, 1000_B) == 1);  // late ranks have less in flight
}

TEST_CASE("K22 appendix C: the largest window fits, and no larger one does") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_step_shape();
    const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, shape.ranks);
    const auto few = alike(shape, checkpoints);
    const auto all = alike(shape, everything);
    const Bytes available(*rc::gen::inRange(0, 1000));
    const auto fits = [&](std::int64_t window) {
      return total(rank_activations(few, all, window, shape, rank).at_peak) <= available;
    };
    const std::int64_t largest = largest_window(few, all, shape, rank, available);
    RC_ASSERT(largest == 0 || fits(largest));
    for (std::int64_t window = largest + 1; window <= chunks_in_flight(shape, rank); ++window) {
      RC_ASSERT(!fits(window));
    }
  }));
}

}  // namespace headroom

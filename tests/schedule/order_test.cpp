// Small schedules written out by hand, in Megatron-LM's order.
#include "headroom/schedule/order.hpp"

#include <string>

#include <doctest/doctest.h>

namespace headroom {
namespace {

// "F0 B0", or "F0a B0b" with a letter for the chunk where there are several.
std::string order(const ScheduleShape& shape, std::int64_t rank) {
  std::string text;
  for (const Step& step : steps_of_rank(shape, rank)) {
    if (!text.empty()) text += ' ';
    text += (step.pass == Pass::forward ? 'F' : 'B') + std::to_string(step.microbatch);
    if (shape.chunks > 1) text += static_cast<char>('a' + step.chunk);
  }
  return text;
}

}  // namespace

TEST_CASE("schedule: GPipe runs all forwards, then all backwards, on every rank") {
  const ScheduleShape shape{ScheduleKind::gpipe, 2, 1, 3};
  CHECK(order(shape, 0) == "F0 F1 F2 B0 B1 B2");
  CHECK(order(shape, 1) == "F0 F1 F2 B0 B1 B2");
}

TEST_CASE("schedule: 1F1B with four ranks") {
  const ScheduleShape shape{ScheduleKind::one_forward_one_backward, 4, 1, 6};
  CHECK(order(shape, 0) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  CHECK(order(shape, 1) == "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5");
  CHECK(order(shape, 2) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
  CHECK(order(shape, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
}

TEST_CASE("schedule: 1F1B with fewer microbatches than ranks") {
  const ScheduleShape shape{ScheduleKind::one_forward_one_backward, 4, 1, 2};
  CHECK(order(shape, 0) == "F0 F1 B0 B1");
  CHECK(order(shape, 2) == "F0 F1 B0 B1");
  CHECK(order(shape, 3) == "F0 B0 F1 B1");
}

TEST_CASE("schedule: interleaved with two ranks of two chunks") {
  const ScheduleShape shape{ScheduleKind::interleaved, 2, 2, 4};
  CHECK(order(shape, 0) == "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  CHECK(order(shape, 1) == "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
}

TEST_CASE("schedule: interleaved with as many microbatches as ranks") {
  const ScheduleShape shape{ScheduleKind::interleaved, 2, 2, 2};
  CHECK(order(shape, 0) == "F0a F1a F0b F1b B0b B1b B0a B1a");
}

// The example in Megatron-Core's forward_backward_pipelining_with_interleaving, PP2 N3M5 with VP2: forward passes of
// microbatches 0 1 2 0 1 2 3 4 3 4 through chunks 0 0 0 1 1 1 0 0 1 1. Rank 0 runs 2 + 3 of them ahead, rank 1 runs 3.
TEST_CASE("schedule: interleaved in groups of three of five microbatches") {
  const ScheduleShape shape{ScheduleKind::interleaved, 2, 2, 5, 3};
  CHECK(order(shape, 0) == "F0a F1a F2a F0b F1b F2b B0b F3a B1b F4a B2b F3b B0a F4b B1a B2a B3b B4b B3a B4a");
  CHECK(order(shape, 1) == "F0a F1a F2a F0b B0b F1b B1b F2b B2b F3a B0a F4a B1a F3b B2a F4b B3b B4b B3a B4a");
}

TEST_CASE("schedule: one rank takes microbatches one by one") {
  CHECK(order({ScheduleKind::one_forward_one_backward, 1, 1, 3}, 0) == "F0 B0 F1 B1 F2 B2");
}

TEST_CASE("schedule: the c-th chunk of a rank is stage c p + rank") {
  constexpr ScheduleShape shape{ScheduleKind::interleaved, 4, 3, 8};
  static_assert(stage_of(shape, 0, 0) == 0);
  static_assert(stage_of(shape, 3, 0) == 3);
  static_assert(stage_of(shape, 0, 1) == 4);
  static_assert(stage_of(shape, 3, 2) == 11);
}

TEST_CASE("schedule: the shape of a strategy") {
  CHECK(schedule_shape({.pipeline_parallel = 4, .virtual_pipeline = 2, .schedule = ScheduleKind::interleaved},
                       16) == ScheduleShape{ScheduleKind::interleaved, 4, 2, 16});
}

TEST_CASE("schedule: a million microbatches are cut down to a few, except for GPipe") {
  CHECK(same_liveness({ScheduleKind::one_forward_one_backward, 8, 1, 1'000'000}).microbatches <= 64);
  CHECK(same_liveness({ScheduleKind::one_forward_one_backward, 8, 1, 3}).microbatches == 3);
  CHECK(same_liveness({ScheduleKind::gpipe, 8, 1, 1000}).microbatches == 1000);
}

}  // namespace headroom

// The longest sequence and its like are those of plans that fit by what PyTorch's allocator reserves.
#include "headroom/search/find_held.hpp"

#include <doctest/doctest.h>

#include "headroom/answer/plan.hpp"
#include "search/stack_search.hpp"

namespace headroom {

TEST_CASE(
    "find held: the longest sequence has a plan that fits by what PyTorch holds, and a step more has none") {
  const Searched it = searched("gpt3-175b", "dgx-a100-80g", "megatron-2022", 64, 64);
  const Question question{.extreme = Extreme::max_sequence, .step = 512};
  const Found by_tensors = find(it.base, it.space, question);
  const Found held = find_held(it.base, it.space, question);
  REQUIRE(held.value);
  CHECK(*held.value < *by_tensors.value);
  const auto best_at = [&](std::int64_t sequence) {
    PlanQuestion at{.base = it.base, .space = it.space};
    at.base.workload.sequence = sequence;
    return answer(at);
  };
  const PlanReply last = best_at(*held.value);
  REQUIRE_FALSE(last.result.plans.empty());
  CHECK(last.result.plans.front().verdict == Verdict::fits);
  const PlanReply beyond = best_at(*held.value + question.step);
  CHECK((beyond.result.plans.empty() || beyond.result.plans.front().verdict != Verdict::fits));
}

TEST_CASE("find held: TP beyond a node is looked at where nothing fits within it, of a wide space alone") {
  Searched it = searched("llama-3-405b", "dgx-h100-80g", "torchtitan-2025", 512, 512);
  it.base.system.devices_per_node = 1;
  it.base.workload.sequence = 16384;
  it.space.pipeline_parallel = it.space.context_parallel = {.only = {1}};
  it.space.breadth = Breadth::wide;
  const Question question{.extreme = Extreme::min_devices, .most = 512};
  CHECK_FALSE(find(it.base, it.space, question).value);
  const Found wide = find_held(it.base, it.space, question);
  REQUIRE(wide.value);
  CHECK(*wide.value <= 512);
  it.space.breadth = Breadth::usual;
  CHECK_FALSE(find_held(it.base, it.space, question).value);
}

}  // namespace headroom

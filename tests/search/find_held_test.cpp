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

}  // namespace headroom

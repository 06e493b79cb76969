// What is shown fits by what PyTorch's allocator holds, not by what tensors take at once.
#include "headroom/search/confirm.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/answer/plan.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "search/stack_search.hpp"

namespace headroom {
namespace {

Plan settled_plan(const Request& base, const Strategy& strategy) {
  Request request = base;
  request.strategy = strategy;
  return account(settled(evaluate(request)));
}

}  // namespace

TEST_CASE("confirm: the plans that are shown fit by what PyTorch holds, the best first") {
  int others = 0;  // searches whose best plan by tensors is not what is shown
  for (const auto& it : {searched("llama-3-8b", "dgx-h100-80g", "torchtitan-2025", 8, 64),
                         searched("llama-3-8b", "dgx-h100-80g", "torchtitan-2025", 16, 64),
                         searched("llama-3-8b", "dgx-h200-141g", "torchtitan-2025", 8, 64),
                         searched("llama-3-8b", "dgx-a100-80g", "torchtitan-2025", 8, 64),
                         searched("llama-3-8b", "dgx-h100-80g", "torchtitan-2025", 32, 128)}) {
    const SearchResult by_tensors = search(it.base, it.space);
    if (settled_plan(it.base, by_tensors.plans.front().strategy).verdict != Verdict::fits) ++others;
    const PlanReply reply = answer(PlanQuestion{.base = it.base, .space = it.space});
    REQUIRE_FALSE(reply.result.plans.empty());
    CHECK(reply.result.plans.front().verdict == Verdict::fits);
    for (std::size_t i = 0; i < reply.result.plans.size(); ++i) {
      const Candidate& candidate = reply.result.plans[i];
      const Plan plan = settled_plan(it.base, candidate.strategy);
      CHECK(plan.verdict == candidate.verdict);
      CHECK(plan.verdict != Verdict::does_not_fit);
      if (plan.verdict == Verdict::fits && plan.allocator) CHECK(*held_bytes(plan) <= it.base.system.memory);
      if (i > 0) CHECK(reply.result.plans[i - 1].verdict <= candidate.verdict);
      const auto same = [&](const Candidate& other) { return other.strategy == candidate.strategy; };
      CHECK(std::count_if(reply.result.plans.begin(), reply.result.plans.end(), same) == 1);
      if (i < compared_plans) CHECK((candidate.held || !plan.allocator));
    }
    const std::size_t shown = std::min(Shown{}.pareto, reply.result.pareto.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const Candidate& candidate = reply.result.pareto[i];
      CHECK(settled_plan(it.base, candidate.strategy).verdict == candidate.verdict);
    }
  }
  CHECK(others > 0);
}

TEST_CASE(
    "confirm: a plan that PyTorch leaves marginal is no slower than one of the front that needs no more") {
  auto it = searched("qwen3-next-80b-a3b", "dgx-b200-180g", "llm-foundry-2023", 4, 16);
  it.base.strategy.optimizer.kind = OptimizerKind::adafactor;
  it.space.breadth = Breadth::usual;
  const PlanReply reply = answer(PlanQuestion{.base = it.base, .space = it.space});
  REQUIRE_FALSE(reply.result.plans.empty());
  const Candidate& best = reply.result.plans.front();
  REQUIRE(best.verdict == Verdict::marginal);
  REQUIRE(best.held);
  int compared = 0;
  for (const Candidate& other : reply.result.pareto) {
    if (!other.held || *other.held > *best.held) continue;
    CHECK(other.iteration >= best.iteration);
    ++compared;
  }
  CHECK(compared > 1);
}

}  // namespace headroom

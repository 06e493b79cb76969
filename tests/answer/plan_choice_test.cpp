// The plan that is chosen among those that predictions cannot tell apart, and what measured runs make of it.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/answer/plan.hpp"
#include "headroom/answer/sweep.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "search/stack_search.hpp"

namespace headroom {

TEST_CASE("plan: the chosen plan is even unless no even one is within 3%, and --exact takes the fastest") {
  const auto it = searched("gpt-22b", "dgx-a100-80g", "megatron-core-2025", 8, 16);
  Space space = it.space;
  space.breadth = Breadth::wide;
  const PlanReply robust = answer(PlanQuestion{.base = it.base, .space = space});
  const PlanReply exact =
      answer(PlanQuestion{.base = it.base, .space = space, .choice = {.by = RankedBy::time, .measured = {}}});
  REQUIRE(robust.choice);
  REQUIRE(exact.choice);
  CHECK_FALSE(exact.choice->spared);
  const Candidate& fastest = exact.result.plans.front();
  const Candidate& chosen = robust.result.plans.front();
  for (const Candidate& plan : exact.result.plans) CHECK(plan.iteration >= fastest.iteration);
  CHECK(stage_layout(it.base.model.layers, chosen.strategy) == StageLayout::even);
  CHECK(chosen.iteration > fastest.iteration);
  REQUIRE(robust.choice->spared);
  CHECK(robust.choice->spared->candidate.strategy == fastest.strategy);
  CHECK(std::any_of(robust.choice->spared->drawbacks.begin(), robust.choice->spared->drawbacks.end(),
                    [](const Drawback* spared) { return spared->name == "uneven_layout"; }));
  double odds = 0;
  for (const PlanBelief& belief : robust.choice->plans) odds += belief.odds;
  CHECK(odds <= 1 + 1e-9);
}

TEST_CASE("plan: --exact is never slower than the preferred plan, also where a simpler one is faster") {
  const auto it = searched("llama-3-8b", "dgx-h100-80g", "megatron-core-2025", 8, 64);
  Space space = it.space;
  space.breadth = Breadth::wide;
  const PlanReply robust = answer(PlanQuestion{.base = it.base, .space = space});
  const PlanReply exact =
      answer(PlanQuestion{.base = it.base, .space = space, .choice = {.by = RankedBy::time, .measured = {}}});
  CHECK(exact.result.plans.front().iteration <= robust.result.plans.front().iteration);
}

TEST_CASE("a sweep of plans chooses as plan does") {
  const auto it = searched("gpt-22b", "dgx-a100-80g", "megatron-core-2025", 8, 16);
  Space space = it.space;
  space.breadth = Breadth::wide;
  for (const RankedBy by : {RankedBy::preference, RankedBy::time}) {
    const PlanReply reply =
        answer(PlanQuestion{.base = it.base, .space = space, .choice = {.by = by, .measured = {}}});
    const SweepRow row = answer(PointQuestion{.request = it.base, .space = space, .training = {}, .by = by});
    const Strategy& first = reply.result.plans.front().strategy;
    CHECK(row.strategy == edits_of(first, reply.base.software, reply.base.model));
  }
}

TEST_CASE("plan: what was measured ranks the plans again") {
  const auto it = searched("gpt3-175b", "dgx-a100-80g", "megatron-2022", 64, 64);
  PlanQuestion question{.base = it.base, .space = it.space, .choice = {.trials = 3, .measured = {}}};
  const PlanReply before = answer(question);
  REQUIRE(before.choice);
  REQUIRE(before.choice->trials.size() >= 2);
  CHECK(before.choice->trials.front().candidate.strategy == before.result.plans.front().strategy);
  const Candidate first = before.choice->trials[0].candidate;
  const Candidate second = before.choice->trials[1].candidate;
  question.choice.measured = {{"0", first.strategy, 1.2 * first.iteration},
                              {"1", second.strategy, 0.95 * second.iteration}};
  const PlanReply after = answer(question);
  REQUIRE(after.choice);
  CHECK(after.result.plans.front().strategy == second.strategy);
  CHECK(after.choice->plans.front().ran);
  CHECK(after.choice->plans.front().expected->count() == doctest::Approx(0.95 * second.iteration.count()));
  CHECK(after.choice->plans.front().interval->low.count() ==
        doctest::Approx(0.95 * second.iteration.count()));

  question.choice.measured = {{"0", first.strategy, std::nullopt}};  // ran out of memory
  const PlanReply without = answer(question);
  for (const Candidate& plan : without.result.plans) CHECK(plan.strategy != first.strategy);

  question.choice.measured = {{"trials.json: /trials/0/flags", {.tensor_parallel = 7}, Seconds(1)}};
  CHECK_THROWS_AS(answer(question), InputError);
}

}  // namespace headroom

// What is shown fits by what PyTorch's allocator holds, not by what tensors take at once.
#include "headroom/search/confirm.hpp"

#include <doctest/doctest.h>

#include "headroom/answer/plan.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/stack_legality.hpp"
#include "headroom/plan/allocator_use.hpp"

namespace headroom {
namespace {

Searched searched(const char* model, const char* system, const char* software, std::int64_t devices,
                  std::int64_t batch) {
  Searched it;
  it.base.model = read_model(model);
  it.base.system = read_system(system);
  it.base.software = read_software(software);
  it.base.strategy = with_stack_defaults({}, it.base.software, it.base.model);
  it.base.workload = {.global_batch = batch, .sequence = it.base.model.sequence};
  it.space = {.devices = devices,
              .layouts = layouts_of(it.base.software),
              .schedules = searched_schedules(it.base.software)};
  return it;
}

Plan settled_plan(const Request& base, const Strategy& strategy) {
  Request request = base;
  request.strategy = strategy;
  return account(settled(evaluate(request)));
}

}  // namespace

TEST_CASE("confirm: the plans that are shown fit by what PyTorch holds, the best first") {
  for (const auto& it : {searched("llama-3-8b", "dgx-h100-80g", "torchtitan-2025", 8, 64),
                         searched("llama-3-8b", "dgx-h100-80g", "torchtitan-2025", 32, 128)}) {
    const SearchResult by_tensors = search(it.base, it.space);
    REQUIRE(settled_plan(it.base, by_tensors.plans.front().strategy).verdict != Verdict::fits);
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
    }
  }
}

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

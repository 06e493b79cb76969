// What a page shows beside the account, against the account.
#include "headroom/answer/views.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "answer/plan_of.hpp"
#include "headroom/core/contains.hpp"

namespace headroom {
namespace {

const Strategy interleaved{
    .tensor_parallel = 8,
    .pipeline_parallel = 8,
    .virtual_pipeline = 3,
    .sequence_parallel = true,
    .recompute = {.policy = RecomputePolicy::selective},
    .schedule = ScheduleKind::interleaved,
};

}  // namespace

TEST_CASE("ladder [K22, figure 7]: each rung of GPT-3 175B takes less memory than the one before it") {
  const Plan plan = plan_of("gpt3-175b", "megatron-2022", interleaved, 64);
  const std::vector<Rung> ladder = ladder_of(plan);
  REQUIRE(ladder.size() == 6);
  CHECK((ladder[0].recompute == RecomputePolicy::none && !ladder[0].sequence_parallel));
  CHECK(ladder[1].activations < ladder[0].activations);  // SP
  CHECK(ladder[2].activations < ladder[0].activations);  // selective
  CHECK(ladder[3].activations < ladder[1].activations);  // both
  CHECK(ladder[5].activations < ladder[3].activations);  // full
  CHECK(ladder[0].verdict == Verdict::does_not_fit);
  CHECK(ladder[3].verdict == Verdict::fits);
}

TEST_CASE("ladder: the plan's own rung has its peak and its time") {
  const Plan plan = plan_of("gpt3-175b", "megatron-2022", interleaved, 64);
  const std::vector<Rung> ladder = ladder_of(plan);
  const auto own = std::ranges::find_if(ladder, [](const Rung& rung) {
    return rung.sequence_parallel && rung.recompute == RecomputePolicy::selective;
  });
  REQUIRE(own != ladder.end());
  CHECK(own->peak == peak(plan));
  CHECK(own->iteration == plan.timing->iteration.total);
}

TEST_CASE("ladder: no rung that the stack cannot run, or that TP 1 has no use for") {
  const Plan plan =
      plan_of("llama-3-8b", "torchtitan-2025", {.data_parallel = 8, .data_sharding = DataSharding::zero3}, 8);
  for (const Rung& rung : ladder_of(plan)) {
    CHECK_FALSE(rung.sequence_parallel);
    CHECK(contains(plan.request.software.recompute, rung.recompute));
  }
}

TEST_CASE("frontier of a plan: its own recomputation is not beaten by less memory in less time") {
  const Plan plan = plan_of("gpt3-175b", "megatron-2022", interleaved, 64);
  const std::vector<FrontierPoint> frontier = frontier_of(plan);
  REQUIRE(frontier.size() > 10);
  const FrontierPoint* const own = within(frontier, peak(plan));
  REQUIRE(own != nullptr);
  CHECK(own->iteration <= plan.timing->iteration.total);
  CHECK(std::none_of(frontier.begin(), frontier.end(), [&](const FrontierPoint& point) {
    return point.peak > peak(plan) && point.iteration >= plan.timing->iteration.total;
  }));
}

TEST_CASE("views: the schedule has every pass, and the layer explains this strategy") {
  const Plan plan = plan_of("gpt3-175b", "megatron-2022", interleaved, 64);
  const Views views = views_of(plan, WhichViews::all);
  REQUIRE(views.schedule);
  CHECK(std::ssize(views.schedule->steps) == trace_steps(plan));
  REQUIRE(views.layer);
  CHECK(views.layer->strategy == plan.request.strategy);
  const Views quick = views_of(plan, WhichViews::quick);
  CHECK(quick.schedule->steps == views.schedule->steps);
  CHECK(quick.layer->strategy == plan.request.strategy);
  CHECK((quick.ladder.empty() && quick.frontier.empty()));
}

}  // namespace headroom

// ZB-H1 as a strategy that a user asks for: what it takes and holds beside 1F1B, and what it does not go with.
#include <doctest/doctest.h>

#include "headroom/answer/explain.hpp"
#include "headroom/answer/trace.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/schedule/replay.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

Request with_schedule(ScheduleKind schedule) {
  Request request = with_both_techniques(gpt3_timed());
  request.strategy.virtual_pipeline = 1;
  request.strategy.schedule = schedule;
  return request;
}

Request zero_bubble() { return with_schedule(ScheduleKind::zero_bubble_h1); }
Request whole() { return with_schedule(ScheduleKind::one_forward_one_backward); }

TEST_CASE("zero bubble: the work of 1F1B with a shorter bubble, each pass for weights drawn") {
  const Plan apart = account(evaluate(zero_bubble()));
  const Plan merged = account(evaluate(whole()));
  const IterationTime& time = apart.timing->iteration;
  CHECK(time.total < merged.timing->iteration.total);
  CHECK(time.breakdown.bubble < 0.75 * merged.timing->iteration.breakdown.bubble);
  CHECK(time.breakdown.gemm == merged.timing->iteration.breakdown.gemm);
  CHECK(time.schedule == replay_schedule(time.shape, time.times));
  std::int64_t weights = 0;
  for (const ReplayedStep& step : trace_of(apart).steps) weights += step.step.pass == Pass::backward_weight;
  CHECK(weights == time.shape.ranks * time.shape.microbatches);
}

TEST_CASE("zero bubble: the first rank holds what it holds under 1F1B, the others nearly as much") {
  const Plan apart = account(evaluate(zero_bubble()));
  const Plan merged = account(evaluate(whole()));
  const auto held = [](const Plan& plan, std::size_t rank) {
    return total(plan.ranks[rank].activations.at_peak);
  };
  // The gap to 1F1B grows with the passes for weights that a rank defers.
  for (std::size_t rank = 1; rank + 1 < apart.ranks.size(); ++rank) {
    CHECK(held(apart, rank) > held(merged, rank));
    CHECK(held(apart, rank) - held(merged, rank) > held(apart, rank - 1) - held(merged, rank - 1));
  }
  const Request request = zero_bubble();
  Composer composer(request);
  const Layout layout = composer.layout(request.strategy);
  CHECK(layout.peak(request.strategy) == RankPeak{apart.peak_rank, peak(apart)});
  CHECK(layout.iteration(request.strategy) == apart.timing->iteration.total);
  CHECK(layout.least_iteration(request.strategy) <= apart.timing->iteration.total);
}

TEST_CASE("zero bubble: explain counts what an estimate counts") {
  Request request = zero_bubble();
  for (const RecomputePolicy policy :
       {RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full}) {
    request.strategy.recompute = {.policy = policy};
    const ExplainReply reply =
        answer(ExplainQuestion{request.model, request.strategy, request.workload, request.detail});
    const Plan plan = account(evaluate(request));
    const RankActivations& first = plan.ranks.front().activations;
    CHECK(reply.first_stage.rank.at_peak == first.at_peak);
    CHECK(reply.first_stage.rank.chunks_in_flight == request.strategy.pipeline_parallel);
  }
}

TEST_CASE("zero bubble: neither a recomputation window nor virtual stages") {
  Request request = zero_bubble();
  request.strategy.recompute.window = true;
  CHECK(illegalities(request.model, request.strategy, request.workload, request.software) ==
        std::vector{Problem{"recompute_window",
                            "needs a `schedule` with unsplit backward passes in the order of the forward "
                            "passes, not zero-bubble-h1"}});
  request = zero_bubble();
  request.strategy.virtual_pipeline = 3;
  CHECK(illegalities(request.model, request.strategy, request.workload, request.software) ==
        std::vector{Problem{"schedule",
                            "must be interleaved or looped-bfs when `virtual_pipeline` is 3, not "
                            "zero-bubble-h1"}});
}

}  // namespace
}  // namespace headroom

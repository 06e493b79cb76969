#include "headroom/answer/views.hpp"

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/plan/allocator_use.hpp"

namespace headroom {
namespace {

std::optional<ExplainReply> layer_of(const Plan& plan) {
  const Request& request = plan.request;
  if (request.strategy.recompute.window) return std::nullopt;
  ExplainQuestion question{.model = request.model,
                           .strategy = request.strategy,
                           .workload = request.workload,
                           .detail = request.detail,
                           .software = request.software};
  if (request.system.performance) question.device = request.system.performance->device;
  return answer(question);
}

}  // namespace

std::vector<Rung> ladder_of(const Plan& plan) {
  std::vector<Rung> rungs;
  for (const RecomputePolicy policy : {RecomputePolicy::none, RecomputePolicy::selective,
                                       RecomputePolicy::selective_op, RecomputePolicy::full}) {
    if (!contains(plan.request.software.recompute, policy)) continue;
    for (const bool sequence_parallel : {false, true}) {
      if (sequence_parallel && plan.request.strategy.tensor_parallel == 1) continue;  // splits nothing
      Request request = plan.request;
      request.strategy.sequence_parallel = sequence_parallel;
      request.strategy.recompute = {.policy = policy};
      if (!illegalities(request, request.strategy).empty()) continue;
      const Evaluation evaluation = evaluate(request);
      const Plan& rung = account(evaluation);
      rungs.push_back({.sequence_parallel = sequence_parallel,
                       .recompute = policy,
                       .activations = of_activations(rung.ranks[rung.peak_rank].activations.at_peak),
                       .peak = peak(rung),
                       .verdict = settled_verdict(evaluation)});
      if (rung.timing) rungs.back().iteration = rung.timing->iteration.total;
    }
  }
  return rungs;
}

std::vector<FrontierPoint> frontier_of(const Plan& plan) {
  if (!plan.timing) return {};
  try {
    return Frontier(plan.request).uniform();
  } catch (const InputError&) {
    return {};
  }
}

Views views_of(const Plan& plan, WhichViews which) {
  EXPECTS(which != WhichViews::none);
  Views views{.layer = layer_of(plan)};
  if (which == WhichViews::all) {
    views.ladder = ladder_of(plan);
    views.frontier = frontier_of(plan);
  }
  if (plan.timing && trace_steps(plan) <= most_drawn_steps) views.schedule = trace_of(plan);
  return views;
}

}  // namespace headroom

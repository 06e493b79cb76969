#include "headroom/answer/trace.hpp"

#include <algorithm>

#include "headroom/core/error.hpp"

namespace headroom {

Trace trace_of(const Plan& plan) {
  EXPECTS(plan.timing.has_value());
  const Request& request = plan.request;
  const IterationTime& iteration = plan.timing->iteration;
  Trace trace{.end = iteration.total};
  replay_schedule(iteration.shape, iteration.times,
                  [&](const ReplayedStep& step) { trace.steps.push_back(step); });
  // Grouped by rank, each rank's in order.
  std::stable_sort(trace.steps.begin(), trace.steps.end(),
                   [](const ReplayedStep& x, const ReplayedStep& y) { return x.rank < y.rank; });

  const std::vector<StageActivations> stages =
      stage_activations(request.model, request.strategy, request.workload, request.detail, request.software);
  Strategy everything = request.strategy;
  everything.recompute = {};
  const std::vector<StageActivations> full =
      stage_activations(request.model, everything, request.workload, request.detail, request.software);
  const Seconds reduced = iteration.total - iteration.breakdown.optimizer;
  for (const RankMemory& memory : plan.ranks) {
    const std::int64_t rank = memory.activations.pipeline_rank;
    trace.activations.push_back(activations_by_step(stages, full, memory.window, iteration.shape, rank));
    trace.resident.push_back({.state = memory.state.weights + memory.state.gradients + memory.state.optimizer,
                              .reserved = memory.dummy_gradients + memory.workspaces + memory.reserved});
    if (iteration.breakdown.data_communication > Seconds(0)) {
      trace.spans.push_back({"reduce gradients", rank, iteration.schedule.makespan, reduced});
    }
    trace.spans.push_back({"optimizer", rank, reduced, iteration.total});
  }
  return trace;
}

TraceReply answer(const TraceQuestion& question) {
  const Request& request = question.request;
  TraceReply reply{.evaluation = evaluate(request), .trace = {}};
  const Plan& plan = account(reply.evaluation);
  if (!plan.timing) throw InputError(request.system.name, "has no performance figures, which a trace needs");
  reply.trace = trace_of(plan);
  return reply;
}

}  // namespace headroom

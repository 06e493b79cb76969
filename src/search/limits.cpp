#include "headroom/search/limits.hpp"

#include "headroom/plan/changes.hpp"

namespace headroom {

std::optional<BlockedChange> blocked_by_memory(const Plan& plan) {
  std::optional<BlockedChange> fastest;
  for (const Edits& change : changes_on_same_devices(plan.request)) {
    const Request request = changed(plan.request, change);
    if (devices(request.strategy) != devices(plan.request.strategy) ||
        !illegalities(request.model, request.strategy, request.workload).empty()) {
      continue;
    }
    const Evaluation evaluation = evaluate(request);
    const auto* infeasible = std::get_if<Infeasible>(&evaluation);
    if (infeasible == nullptr) continue;
    const Seconds iteration = infeasible->attempt.timing->iteration.total;
    const Seconds bound = fastest ? fastest->iteration : plan.timing->iteration.total;
    if (iteration < bound)
      fastest = BlockedChange{change, iteration, infeasible->needed - infeasible->available};
  }
  return fastest;
}

std::vector<Found> relief(const Request& base, const Space& space) {
  const auto [batch, sequence] = base.workload;
  // Lengths that kernels are made for, where there is room for them.
  const std::int64_t step = sequence > usual_sequence_step ? usual_sequence_step : 1;
  return {find(base, space, {.extreme = Extreme::min_devices, .most = usual_most_devices}),
          find(base, space, {.extreme = Extreme::max_batch, .most = batch - 1}),
          find(base, space, {.extreme = Extreme::max_sequence, .step = step, .most = sequence - 1})};
}

}  // namespace headroom

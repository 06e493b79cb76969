#include "headroom/search/limits.hpp"

#include "headroom/plan/changes.hpp"

namespace headroom {

std::optional<BlockedChange> blocked_by_memory(const Plan& plan) {
  std::optional<BlockedChange> fastest;
  for (const Change& change : changes_on_same_devices(plan.request)) {
    Request changed = plan.request;
    change.apply(changed);
    if (devices(changed.strategy) != devices(plan.request.strategy) ||
        !illegalities(changed.model, changed.strategy, changed.workload).empty()) {
      continue;
    }
    const Evaluation evaluation = evaluate(changed);
    const auto* infeasible = std::get_if<Infeasible>(&evaluation);
    if (infeasible == nullptr) continue;
    const Seconds iteration = infeasible->attempt.timing->iteration.total;
    const Seconds bound = fastest ? fastest->iteration : plan.timing->iteration.total;
    if (iteration < bound)
      fastest = BlockedChange{change.flags, iteration, infeasible->needed - infeasible->available};
  }
  return fastest;
}

Relief relief(const Request& base, const Space& space) {
  Relief result;
  constexpr std::int64_t most_times = 1024;
  for (std::int64_t times = 2; times <= most_times && !result.devices; times *= 2) {
    Space larger = space;
    larger.devices *= times;
    if (any_fits(base, larger)) result.devices = larger.devices;
  }
  Request less = base;
  for (std::int64_t& batch = less.workload.global_batch; batch % 2 == 0 && !result.batch;) {
    batch /= 2;
    if (any_fits(less, space)) result.batch = batch;
  }
  less = base;
  for (std::int64_t& sequence = less.workload.sequence; sequence % 2 == 0 && !result.sequence;) {
    sequence /= 2;
    if (any_fits(less, space)) result.sequence = sequence;
  }
  return result;
}

}  // namespace headroom

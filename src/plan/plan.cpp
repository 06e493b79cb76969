#include "headroom/plan/plan.hpp"

#include <utility>

#include "headroom/parallel/legality.hpp"
#include "headroom/plan/composer.hpp"

namespace headroom {

Bytes peak(const Plan& plan) { return total(plan.ranks[plan.peak_rank]); }

Verdict verdict_of(const Request& request, Bytes peak) {
  const Bytes free = request.system.memory - peak;
  if (free < Bytes(0)) return Verdict::does_not_fit;
  return free < request.margin * request.system.memory ? Verdict::marginal : Verdict::fits;
}

Bytes headroom_of(const Plan& plan) { return plan.request.system.memory - peak(plan); }

Asked asked(const Request& request, const Strategy& strategy, KnownLayers* known) {
  return {request.model,   strategy, request.workload, request.software,
          &request.system, known,    &request.insisted};
}

std::vector<Problem> illegalities(const Request& request, const Strategy& strategy) {
  return problems_of(asked(request, strategy), all_rules);
}

Evaluation evaluate(const Request& request) { return Composer(request).evaluate(request.strategy); }

const Plan& account(const Evaluation& evaluation) {
  const auto* infeasible = std::get_if<Infeasible>(&evaluation);
  return infeasible != nullptr ? infeasible->attempt : std::get<Plan>(evaluation);
}

Plan account(Evaluation&& evaluation) {
  auto* infeasible = std::get_if<Infeasible>(&evaluation);
  return infeasible != nullptr ? std::move(infeasible->attempt) : std::get<Plan>(std::move(evaluation));
}

}  // namespace headroom

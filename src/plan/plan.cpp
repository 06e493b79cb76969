#include "headroom/plan/plan.hpp"

#include <algorithm>
#include <array>

#include "headroom/plan/composer.hpp"

namespace headroom {

Bytes total(const RankMemory& rank) {
  return total(rank.state) + total(rank.activations.at_peak) + rank.dummy_gradients + rank.workspaces +
         rank.reserved;
}

Bytes peak(const Plan& plan) { return total(plan.ranks[plan.peak_rank]); }

Bytes headroom_of(const Plan& plan) { return plan.request.system.memory - peak(plan); }

Component largest_component(const RankMemory& rank) {
  const std::array<Component, 6> components{{{"weights", rank.state.weights},
                                             {"gradients", rank.state.gradients},
                                             {"optimizer state", rank.state.optimizer},
                                             {"activations", total(rank.activations.at_peak)},
                                             {"dummy weight gradients", rank.dummy_gradients},
                                             {"reserves", rank.reserved}}};
  return *std::max_element(components.begin(), components.end(),
                           [](const Component& x, const Component& y) { return x.bytes < y.bytes; });
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

#include "headroom/plan/interval.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/expects.hpp"

namespace headroom {

StepRates step_rates(const Request& request) {
  EXPECTS(request.system.performance.has_value());
  const Rates& rates = request.system.performance->rates;
  const bool flash = any_flash_attention(request.model);
  const bool assumed_flash = rates.flash_attention.forward.origin == Origin::assumed ||
                             rates.flash_attention.backward.origin == Origin::assumed;
  const bool assumed_clock = rates.products.sustained.origin == Origin::assumed;
  return assumed_clock || (flash && assumed_flash) ? StepRates::transferred : StepRates::fitted;
}

const Spread& iteration_spread(const Spreads& spreads, StepRates rates) {
  return rates == StepRates::fitted ? spreads.fitted : spreads.transferred;
}

IterationInterval iteration_interval(const Plan& plan, const Spreads& spreads) {
  EXPECTS(plan.timing.has_value());
  const StepRates rates = step_rates(plan.request);
  const auto& [logarithm, source] = iteration_spread(spreads, rates);
  const double factor = std::exp(logarithm);
  const Seconds predicted = plan.timing->iteration.total;
  return {.rates = rates, .low = predicted / factor, .high = predicted * factor, .source = source};
}

Bytes allocated(const Plan& plan) {
  Bytes most;
  for (const RankMemory& rank : plan.ranks) most = std::max(most, total(rank) - rank.reserved);
  return most;
}

const Spread& allocated_spread(const Spreads& spreads, const Software& software) {
  return software.memory.backward_buffers ? spreads.allocated : spreads.saved;
}

AllocatedInterval allocated_interval(const Plan& plan, const Spreads& spreads) {
  const Bytes most = allocated(plan);
  const auto& [logarithm, source] = allocated_spread(spreads, plan.request.software);
  const double factor = std::exp(logarithm);
  return {.predicted = most, .low = most / factor, .high = most * factor, .source = source};
}

}  // namespace headroom

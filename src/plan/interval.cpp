#include "headroom/plan/interval.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

double standard_normal(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

// Where the standard normal distribution reaches `odds`.
double normal_quantile(double odds) {
  double low = -40;  // beyond it a double knows no odds but 0 and 1
  double high = 40;
  for (double middle = 0; low < middle && middle < high; middle = low + (high - low) / 2) {
    (standard_normal(middle) < odds ? low : high) = middle;
  }
  return high;
}

double standard_deviation(const Spread& spread) {
  return spread.logarithm / normal_quantile((1 + interval_level) / 2);
}

}  // namespace

StepRates step_rates(const Request& request) {
  EXPECTS(request.system.performance.has_value());
  const Rates& rates = request.system.performance->rates;
  const bool flash = any_flash_attention(request.model);
  const bool assumed_flash = rates.flash_attention.forward.origin == Origin::assumed ||
                             rates.flash_attention.backward.origin == Origin::assumed;
  const bool assumed_clock = rates.products.sustained.origin == Origin::assumed;
  return assumed_clock || (flash && assumed_flash) ? StepRates::transferred : StepRates::fitted;
}

IterationSpread iteration_spread(const Request& request, const Spreads& spreads) {
  const StepRates rates = step_rates(request);
  return {.rates = rates, .spread = rates == StepRates::fitted ? spreads.fitted : spreads.transferred};
}

IterationInterval iteration_interval(Seconds predicted, const Spread& spread) {
  const double factor = std::exp(spread.logarithm);
  return {.low = predicted / factor, .high = predicted * factor};
}

double odds_within(Seconds predicted, Seconds limit, const Spread& spread) {
  return standard_normal(std::log(limit / predicted) / standard_deviation(spread));
}

Seconds predicted_for(Seconds limit, double odds, const Spread& spread) {
  EXPECTS(0 < odds && odds < 1);
  return limit / std::exp(normal_quantile(odds) * standard_deviation(spread));
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

#include "headroom/plan/interval.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

double standard_normal(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

}  // namespace

double normal_quantile(double odds) {
  double low = -40;  // beyond this, odds round to 0 or 1 in a double
  double high = 40;
  for (double middle = 0; low < middle && middle < high; middle = low + (high - low) / 2) {
    (standard_normal(middle) < odds ? low : high) = middle;
  }
  return high;
}

double standard_deviation(const Spread& spread) {
  return spread.logarithm / normal_quantile((1 + interval_level) / 2);
}

Spread spread_of(double deviation) {
  return {.logarithm = deviation * normal_quantile((1 + interval_level) / 2), .source = {}};
}

StepRates step_rates(const Request& request) {
  EXPECTS(request.system.performance.has_value());
  const Rates& rates = request.system.performance->rates;
  const std::optional<RunSpread>& own = request.system.performance->run_spread;
  const bool scaled = measured_nowhere(rates.products);
  if (request.strategy.precision_scope.attention) return scaled ? StepRates::scaled : StepRates::experts;
  const bool assumed_flash = any_flash_attention(request.model) && any_assumed(rates.flash_attention);
  // Runs of models with flash attention also show its error.
  if (own && (own->flash_attention || !assumed_flash)) return StepRates::own_runs;
  if (scaled) return StepRates::scaled;
  if (any_experts(request.model)) return StepRates::experts;
  const bool assumed_clock = rates.products.sustained.origin == Origin::assumed;
  return assumed_clock || assumed_flash ? StepRates::kernels : StepRates::fitted;
}

IterationSpread iteration_spread(const Request& request, const Spreads& spreads) {
  const StepRates rates = step_rates(request);
  switch (rates) {
    case StepRates::own_runs: {
      const RunSpread& own = *request.system.performance->run_spread;
      return {.rates = rates,
              .spread = {.logarithm = own.logarithm, .slower = own.slower, .source = own.source}};
    }
    case StepRates::fitted: return {.rates = rates, .spread = spreads.fitted};
    case StepRates::kernels: return {.rates = rates, .spread = spreads.kernels};
    case StepRates::experts: return {.rates = rates, .spread = spreads.experts};
    case StepRates::scaled: return {.rates = rates, .spread = spreads.scaled};
  }
  EXPECTS(!"unknown rates");
  return {};
}

IterationInterval iteration_interval(Seconds predicted, const Spread& spread) {
  return {.low = predicted * std::exp(spread.centre - spread.logarithm),
          .high = predicted * std::exp(spread.centre + spread.logarithm)};
}

double odds_within(Seconds predicted, Seconds limit, const Spread& spread) {
  const double odds =
      standard_normal((std::log(limit / predicted) - spread.centre) / standard_deviation(spread));
  return spread.slower ? std::max(0.0, 2 * odds - 1) : odds;
}

Seconds predicted_for(Seconds limit, double odds, const Spread& spread) {
  EXPECTS(0 < odds && odds < 1);
  const double reached = spread.slower ? (1 + odds) / 2 : odds;
  return limit / std::exp(spread.centre + normal_quantile(reached) * standard_deviation(spread));
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
  const Spread& spread = allocated_spread(spreads, plan.request.software);
  return {.predicted = most,
          .low = most * std::exp(spread.centre - spread.logarithm),
          .high = most * std::exp(spread.centre + spread.logarithm),
          .source = spread.source};
}

}  // namespace headroom

#include "headroom/plan/interval.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/expects.hpp"

namespace headroom {

StepRates step_rates(const Request& request) {
  EXPECTS(request.system.performance.has_value());
  const Rates& rates = request.system.performance->rates;
  const bool flash = request.model.architecture.kernels.attention == AttentionKernel::flash;
  const bool assumed_flash = rates.flash_attention.forward.origin == Origin::assumed ||
                             rates.flash_attention.backward.origin == Origin::assumed;
  const bool assumed_clock = rates.products.sustained.origin == Origin::assumed;
  return assumed_clock || (flash && assumed_flash) ? StepRates::transferred : StepRates::fitted;
}

// Spreads: 80% quantiles over the development rows of runs.json and K22's table 5 (docs/validation.md), rounded to three
// digits. Some rates are fitted to some of these rows.
Spread iteration_spread(StepRates rates) {
  switch (rates) {
    case StepRates::fitted:
      return {0.088,
              "166 runs on A100 (K22 table 5, SC21, vTrain, BLOOM, Zero Bubble), of which eight in ten are "
              "within "
              "9% of their prediction"};
    case StepRates::transferred:
      return {
          0.312,
          "49 runs whose clock or flash attention was assumed (InternEvo on A100, NVIDIA's Nemotron on H100, "
          "SimuMax on B200), of which eight in ten are within 37% of their prediction"};
  }
  EXPECTS(!"unknown step rates");
  return {};
}

Spread allocated_spread() {
  return {0.033,
          "the tensors of 8 configurations (Zero Bubble on A100, SimuMax on B200), of which eight in ten are "
          "within 3.3% of their prediction"};
}

IterationInterval iteration_interval(const Plan& plan) {
  EXPECTS(plan.timing.has_value());
  const StepRates rates = step_rates(plan.request);
  const double factor = std::exp(iteration_spread(rates).logarithm);
  const Seconds predicted = plan.timing->iteration.total;
  return {.rates = rates, .low = predicted / factor, .high = predicted * factor};
}

AllocatedInterval allocated_interval(const Plan& plan) {
  Bytes most;
  for (const RankMemory& rank : plan.ranks) most = std::max(most, total(rank) - rank.reserved);
  const double factor = std::exp(allocated_spread().logarithm);
  return {.predicted = most, .low = most / factor, .high = most * factor};
}

}  // namespace headroom

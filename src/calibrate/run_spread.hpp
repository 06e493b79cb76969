// Spread of iteration times on a system calibrated to runs, from the errors of held-out runs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/calibrate/fit_runs.hpp"

namespace headroom {

// Returns the number of each run's configuration, from 0. Runs that repeat a configuration share its number.
std::vector<std::size_t> configurations_of(const std::vector<MeasuredCase>& runs);

// Returns the widest spread of iteration times among the systems and models of the runs.
Spread widest_spread(const std::vector<MeasuredCase>& runs, const Spreads& spreads);

// Returns the bound of 80% of a further configuration's errors, given n `absolute` errors (logarithms without
// sign): the error of rank 0.8 (n + 1), rounded up. It holds on average for any distribution (conformal
// prediction, Vovk, Gammerman and Shafer 2005). Returns nothing if there are too few errors.
std::optional<double> spread_of_held_out(std::vector<double> absolute);

// Returns the spread of a system fitted to `fitted`. Expects `errors` of the fitted runs, then of `held_out`.
// Held-out runs determine the spread if they have enough configurations; otherwise it is `before`.
RunSpread run_spread(const std::vector<MeasuredCase>& fitted, const std::vector<MeasuredCase>& held_out,
                     const std::vector<RunError>& errors, const Spread& before, const std::string& file);

}  // namespace headroom

// How far iteration times on a system are off that is calibrated to runs: what the errors of held-out runs allow.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/calibrate/fit_runs.hpp"

namespace headroom {

// For each run the number of its configuration, from 0: runs that repeat one have the same.
std::vector<std::size_t> configurations_of(const std::vector<MeasuredCase>& runs);

// The widest spread of the iteration times of runs as their systems and models have it.
Spread widest_spread(const std::vector<MeasuredCase>& runs, const Spreads& spreads);

// What 80% of a further configuration's errors stay within, where n alike were off by `absolute` (logarithms without
// sign): the one of rank 0.8 (n + 1), rounded up, so that it holds on average whatever their distribution is (conformal
// prediction, Vovk, Gammerman and Shafer 2005). None where there are too few.
std::optional<double> spread_of_held_out(std::vector<double> absolute);

// Of a system that was fitted to `fitted`; `errors` are of these and then of `held_out`, which tell the spread where they
// are of enough configurations. It is `before` otherwise.
RunSpread run_spread(const std::vector<MeasuredCase>& fitted, const std::vector<MeasuredCase>& held_out,
                     const std::vector<RunError>& errors, const Spread& before, const std::string& file);

}  // namespace headroom

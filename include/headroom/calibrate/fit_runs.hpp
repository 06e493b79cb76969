// The sustained efficiencies of a system fitted to the iteration times of training runs on it: what microbenchmarks in
// bursts do not tell. Nothing else of the system changes.
//
// The scalars, each a part of one:
//   products.sustained           clock of a training step over the clock of a burst
//   streaming.bandwidth_share    of the memory's bandwidth
//   flash_attention.sustained    clock of a training step over the clock of a burst of its kernels
//   network.nic_efficiency       of NICs that a ring has for itself
//   network.shared_nic_efficiency  of NICs that several rings share
// Which of them are fitted follows from the configurations alone, not from the times: at most one for every two
// configurations (one for a single run), and only where times follow it enough, and apart from the others.
//
// The spread of iteration times on the system becomes what the errors of held-out configurations allow, wider or narrower:
// of n of them that with rank 0.8 (n + 1), rounded up, so that a further one lies within with odds of at least 80% if they
// are alike (conformal prediction, Vovk et al. 2005). Too few of them leave the spread that predictions on the base have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/calibrate/fit_rates.hpp"

namespace headroom {

struct RunError {
  std::string name;
  bool fitted = false;  // else held out
  Seconds measured;
  double before = 0;               // signed errors, parts of the measured time: under the base,
  double after = 0;                // under what was fitted,
  std::optional<double> left_out;  // and under what is fitted to the other configurations alone
  friend bool operator==(const RunError&, const RunError&) = default;
};

struct RunCalibration {
  System system;                   // the base with fitted efficiencies in place of its own
  std::vector<FittedRate> fitted;  // with the base's values
  std::vector<RunError> runs;      // those that were fitted, then those held out
  double spread_before =
      0;  // of iteration times on the base, where the system has what held-out errors allow
  std::vector<std::string> warnings;
  friend bool operator==(const RunCalibration&, const RunCalibration&) = default;
};

inline constexpr std::size_t most_fitted_runs = 200;

// Fewer held-out configurations tell no 80% interval: a further one lies beyond all n of them with odds of 1 in n + 1.
inline constexpr std::size_t least_held_out = 4;

// Why no efficiencies within their bounds explain the time of a run, which is then of another configuration or system than
// it says; empty where some do.
std::string unexplained(const MeasuredCase& run, const System& base);

// `fitted` and `held_out` are cases with an iteration time, all requests on `base`; `file` names where they come from.
// Throws InputError when there are none to fit, or more than most_fitted_runs, when two have one name, or when the
// runs tell none of the scalars. Expects a base with performance figures, which explains the times of the fitted runs.
RunCalibration calibrate_to_runs(const std::vector<MeasuredCase>& fitted,
                                 const std::vector<MeasuredCase>& held_out, const System& base,
                                 const Spreads& spreads, const std::string& file);

}  // namespace headroom

// Fits the sustained efficiencies of a system to the iteration times of training runs on it. Microbenchmarks
// in bursts do not show these efficiencies. Nothing else of the system changes.
//
// The scalars, each a fraction of one:
//   products.sustained            clock of a training step over the clock of a burst
//   streaming.bandwidth_share     fraction of the memory bandwidth
//   flash_attention.sustained     clock of a training step over the clock of a burst of its kernels
//   network.nic_efficiency        efficiency of NICs that serve one ring
//   network.shared_nic_efficiency efficiency of NICs that several rings share
// The configurations, not the times, determine which scalars are fitted: at most one for every two
// configurations (one for a single run). A scalar is fitted only if times depend on it enough, and apart from
// the other scalars.
//
// The spread of iteration times on the system becomes what the errors of held-out configurations allow, wider
// or narrower. Of n such errors, the spread is the one with rank 0.8 (n + 1), rounded up. A further error
// then lies within with odds of at least 80%, if configurations are alike (conformal prediction, Vovk et al.
// 2005). With too few held-out configurations, the spread of predictions on the base remains.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/core/watch.hpp"

namespace headroom {

struct RunError {
  std::string name;
  bool fitted = false;  // false: held out
  Seconds measured;
  double before = 0;               // signed error on the base, as a fraction of the measured time
  double after = 0;                // error with the fitted efficiencies
  std::optional<double> left_out;  // error with efficiencies fitted to the other configurations alone
  friend bool operator==(const RunError&, const RunError&) = default;
};

struct RunCalibration {
  System system;                   // the base with the fitted efficiencies
  std::vector<FittedRate> fitted;  // with the base's values
  std::vector<RunError> runs;      // fitted runs, then held-out runs
  double spread_before =
      0;  // of iteration times on the base, if the system has a spread from held-out errors
  std::vector<std::string> warnings;
  friend bool operator==(const RunCalibration&, const RunCalibration&) = default;
};

inline constexpr std::size_t most_fitted_runs = 200;

// Fewest held-out configurations that determine an 80% interval. A further error lies beyond all n of them
// with odds of 1 in n + 1.
inline constexpr std::size_t least_held_out = 4;

// Returns why no efficiencies within their bounds explain the time of a run, or an empty text if some do.
// Such a run has another configuration or system than it says.
std::string unexplained(const MeasuredCase& run, const System& base);

// Fits efficiencies to the `fitted` runs and computes errors of the `held_out` ones. Expects cases with an
// iteration time and requests on `base`, and a base with performance figures that explains the times of the
// fitted runs. `file` names the source of the runs. Throws InputError if there are no runs to fit or more
// than most_fitted_runs, if two runs share a name, or if the runs determine none of the scalars.
RunCalibration calibrate_to_runs(const std::vector<MeasuredCase>& fitted,
                                 const std::vector<MeasuredCase>& held_out, const System& base,
                                 const Spreads& spreads, const std::string& file, const Watch& watch = {});

}  // namespace headroom

// A system's rates fitted to what was measured: the questions of `headroom calibrate`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/calibrate/fit_runs.hpp"
#include "headroom/calibrate/profile.hpp"
#include "headroom/io/run_cases.hpp"

namespace headroom {

// Of kernels and collectives: which rates of the base do these samples determine?
struct CalibrateQuestion {
  std::vector<SampleSet> sets;
  std::vector<Profile> profiles = {};  // whose samples join the sets
  System base;                         // with performance figures
};

struct CalibrateReply {
  Calibration calibration;
  std::vector<Profile> profiles;  // those of the question
  friend bool operator==(const CalibrateReply&, const CalibrateReply&) = default;
};

// Throws InputError as calibrate() does, and where a profile holds no samples.
CalibrateReply answer(const CalibrateQuestion& question);

// Of training runs: which sustained efficiencies of the base do their times tell?
struct CalibrateToRunsQuestion {
  ChosenRuns runs;    // on the base
  System base;        // with performance figures
  std::string files;  // that the runs are from, for messages
};

// Errors of some runs together, parts of one.
struct RunErrors {
  std::size_t runs = 0;
  double median_absolute = 0;
  double worst_absolute = 0;
  friend bool operator==(const RunErrors&, const RunErrors&) = default;
};

struct CalibrateToRunsReply {
  RunCalibration calibration;
  RunErrors fitted_before;  // runs that were fitted, under the base,
  RunErrors fitted_after;   // under what was fitted,
  RunErrors left_out;       // and each under what is fitted to the others
  RunErrors held_out_before;
  RunErrors held_out_after;
  std::vector<SkippedRun> skipped;
  friend bool operator==(const CalibrateToRunsReply&, const CalibrateToRunsReply&) = default;
};

// Throws InputError where every run is skipped, and as calibrate_to_runs() does.
CalibrateToRunsReply answer(const CalibrateToRunsQuestion& question);

}  // namespace headroom

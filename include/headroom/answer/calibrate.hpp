// Questions of `headroom calibrate`: fit a system's rates to measurements.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/calibrate/fit_runs.hpp"
#include "headroom/calibrate/profile.hpp"
#include "headroom/io/run_cases.hpp"

namespace headroom {

// Asks which rates of the base samples of kernels and collectives determine.
struct CalibrateQuestion {
  std::vector<SampleSet> sets;
  std::vector<Profile> profiles = {};  // their samples are added to the sets
  System base;                         // with performance figures
};

struct CalibrateReply {
  Calibration calibration;
  std::vector<Profile> profiles;  // profiles of the question
  friend bool operator==(const CalibrateReply&, const CalibrateReply&) = default;
};

// Fits rates to the samples. Throws InputError as calibrate() does, and if a profile has no samples.
CalibrateReply answer(const CalibrateQuestion& question, const Watch& watch = {});

// Asks which sustained efficiencies of the base the times of training runs determine.
struct CalibrateToRunsQuestion {
  ChosenRuns runs;    // on the base
  System base;        // with performance figures
  std::string files;  // source of the runs, for messages
};

// Errors of several runs, as fractions of one.
struct RunErrors {
  std::size_t runs = 0;
  double median_absolute = 0;
  double worst_absolute = 0;
  friend bool operator==(const RunErrors&, const RunErrors&) = default;
};

struct CalibrateToRunsReply {
  RunCalibration calibration;
  RunErrors fitted_before;  // fitted runs, on the base
  RunErrors fitted_after;   // fitted runs, with the fitted efficiencies
  RunErrors left_out;       // fitted runs, each with efficiencies fitted to the others
  RunErrors held_out_before;
  RunErrors held_out_after;
  std::vector<SkippedRun> skipped;
  friend bool operator==(const CalibrateToRunsReply&, const CalibrateToRunsReply&) = default;
};

// Fits efficiencies to the runs. Throws InputError if every run is skipped, and as calibrate_to_runs() does.
CalibrateToRunsReply answer(const CalibrateToRunsQuestion& question, const Watch& watch = {});

}  // namespace headroom

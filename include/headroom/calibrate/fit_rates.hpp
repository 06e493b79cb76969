// Rates fitted to samples: the few constants of matrix products, collectives and streaming kernels, within bounds that
// the device's data sheet sets, and how well they predict samples that they were not fitted to.
//
// Held-out errors are those of a cross-validation over shapes: shapes are dealt into thirds, each third is predicted
// by rates fitted to the other two. The rates that are kept are fitted to all samples.
#pragma once

#include <string>
#include <vector>

#include "headroom/calibrate/sample_replay.hpp"

namespace headroom {

struct FittedRate {
  std::string name;    // "products.wave_fill"
  double value = 0;    // in base units
  double before = 0;   // the base's
  bool bound = false;  // stands on a bound of what is physically possible: the samples do not tell it
  friend bool operator==(const FittedRate&, const FittedRate&) = default;
};

struct Calibration {
  System system;  // the base with fitted rates in place of its own
  std::vector<FittedRate> fitted;
  SampleReplay fit;                  // the samples under the rates that were fitted to them
  std::vector<ErrorGroup> held_out;  // the same samples, each under rates that never saw its shape
  std::vector<std::string> warnings;
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// Fits what the samples determine and keeps the rest of the base. Throws InputError, naming file and reason, when
// samples cannot be of the base's device or do not determine the rates that they are of. Expects a base with
// performance figures.
Calibration calibrate(const std::vector<SampleSet>& sets, const System& base);

// The fit alone, of all that the samples determine. As above, without held-out errors.
Rates fit_rates(const std::vector<Sample>& samples, const Performance& base);

}  // namespace headroom

// Fits rates to samples: the few constants of GEMMs, collectives and memory-bound kernels, within bounds from
// the GPU's data sheet. Also measures how well the rates predict samples that they were not fitted to.
//
// Held-out errors come from a cross-validation over shapes. Shapes are divided into thirds, and each third is
// predicted by rates fitted to the other two. The rates that are returned are fitted to all samples.
#pragma once

#include <string>
#include <vector>

#include "headroom/calibrate/sample_replay.hpp"
#include "headroom/core/watch.hpp"

namespace headroom {

struct FittedRate {
  std::string name;    // "products.wave_fill"
  double value = 0;    // in base units
  double before = 0;   // value in the base
  bool bound = false;  // at a physical bound: the samples do not determine it
  friend bool operator==(const FittedRate&, const FittedRate&) = default;
};

struct Calibration {
  System system;  // the base with the fitted rates
  std::vector<FittedRate> fitted;
  SampleReplay fit;                  // the samples, predicted by the rates fitted to them
  std::vector<ErrorGroup> held_out;  // the samples, each predicted by rates fitted without its shape
  std::vector<std::string> warnings;
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// Fits the rates that the samples determine and keeps the others of the base. Throws InputError, naming file
// and reason, if samples cannot come from the base's GPU or do not determine the rates of their kind. Expects
// a base with performance figures.
Calibration calibrate(const std::vector<SampleSet>& sets, const System& base, const Watch& watch = {});

// Returns the fitted rates alone, without held-out errors. Has the preconditions and errors of calibrate().
Rates fit_rates(const std::vector<Sample>& samples, const Performance& base);

}  // namespace headroom

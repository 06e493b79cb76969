// Compares samples with predictions of the time model: predicted, measured, signed error, by kind and size.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/sample.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// Returns the predicted time of a sample. Returns nothing for kinds without an equation, and for GEMMs of a
// type for which the GPU has no peak.
std::optional<Seconds> predicted_time(const Sample& sample, const Performance& performance);

// Returns whether the rates were fitted to samples of this size.
bool within_fit(const Sample& sample, const Rates& rates);

// Returns the 80% interval of measured over predicted time, for rates of the sample's kind and type.
HeldOutRatios held_out_ratios(const Sample& sample, const Rates& rates);

struct ReplayedSample {
  Sample sample;
  Seconds predicted;
  double error = 0;                 // signed, as a fraction of the measured time
  bool extrapolated = false;        // outside the calibrated range
  std::optional<bool> in_interval;  // whether the measured time is in the 80% interval, if there is one
  friend bool operator==(const ReplayedSample&, const ReplayedSample&) = default;
};

// Errors of one kind and size, as fractions of one.
struct ErrorGroup {
  std::string name;  // "products, m n k >= 1024"
  std::size_t count = 0;
  double median_absolute = 0;
  double percentile_90_absolute = 0;
  double worst_absolute = 0;
  double bias = 0;  // median of the signed errors
  double percentile_10 = 0;
  double percentile_90 = 0;   // ends an 80% interval that percentile_10 starts
  std::size_t intervals = 0;  // samples with an 80% interval from other samples
  std::size_t covered = 0;    // samples that are in their interval
  friend bool operator==(const ErrorGroup&, const ErrorGroup&) = default;
};

struct SampleReplay {
  std::vector<ReplayedSample> rows;
  std::vector<ErrorGroup> groups;
  std::map<SampleKind, std::size_t> unmodelled;  // count of samples by kind without an equation
  friend bool operator==(const SampleReplay&, const SampleReplay&) = default;
};

// Compares samples with predictions. Expects a system with performance figures, and samples with times above
// zero.
SampleReplay replay(const std::vector<Sample>& samples, const Performance& performance);

// Returns a group for each kind and size that occurs, in reading order.
std::vector<ErrorGroup> error_groups(const std::vector<ReplayedSample>& rows);

// Returns the quantile `q` of the values, interpolated linearly. Expects at least one value.
double quantile(std::vector<double> values, double q);

}  // namespace headroom

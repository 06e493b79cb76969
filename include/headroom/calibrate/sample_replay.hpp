// Samples replayed as predictions of the time model: predicted, measured, signed error, by kind and size.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/sample.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// What the model says of a sample; nothing for kinds that it has no equation for, and for products of a type that the
// device gives no peak for.
std::optional<Seconds> predicted_time(const Sample& sample, const Performance& performance);

// Whether the rates were fitted on samples of this size.
bool within_fit(const Sample& sample, const Rates& rates);

// The 80% interval of measured over predicted that goes with the rates of a sample's kind and type.
HeldOutRatios held_out_ratios(const Sample& sample, const Rates& rates);

struct ReplayedSample {
  Sample sample;
  Seconds predicted;
  double error = 0;                 // signed, parts of the measured time
  bool extrapolated = false;        // outside what the rates were fitted on
  std::optional<bool> in_interval;  // whether it lies in its 80% interval, where there is one
  friend bool operator==(const ReplayedSample&, const ReplayedSample&) = default;
};

// Errors of one kind and size: parts of one.
struct ErrorGroup {
  std::string name;  // "products, m n k >= 1024"
  std::size_t count = 0;
  double median_absolute = 0;
  double percentile_90_absolute = 0;
  double worst_absolute = 0;
  double bias = 0;  // median of the signed errors
  double percentile_10 = 0;
  double percentile_90 = 0;   // with percentile_10 the ends of an 80% interval
  std::size_t intervals = 0;  // samples with an 80% interval from others,
  std::size_t covered = 0;    // and those that lie in it
  friend bool operator==(const ErrorGroup&, const ErrorGroup&) = default;
};

struct SampleReplay {
  std::vector<ReplayedSample> rows;
  std::vector<ErrorGroup> groups;
  std::map<SampleKind, std::size_t> unmodelled;  // how many there are of kinds without an equation
  friend bool operator==(const SampleReplay&, const SampleReplay&) = default;
};

// Expects a system with performance figures, and samples with times above zero.
SampleReplay replay(const std::vector<Sample>& samples, const Performance& performance);

// A group for each kind and size that occurs, in the order in which they are meant to be read.
std::vector<ErrorGroup> error_groups(const std::vector<ReplayedSample>& rows);

// The value below which a part `q` of the values lies, between neighbours in proportion. Expects at least one.
double quantile(std::vector<double> values, double q);

}  // namespace headroom

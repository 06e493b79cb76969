// Measured runs replayed as predictions: what was measured of a run, what the model says of it, the signed
// error, and whether a group of such errors stays within its target.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/run_groups.hpp"
#include "headroom/core/names.hpp"
#include "headroom/plan/interval.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// What can be measured. Seconds and bytes, and ratios as parts of one.
enum class Measure : std::uint8_t {
  forward_seconds,   // one layer and microbatch on one device, once the host runs ahead
  backward_seconds,  // with its replay
  layer_seconds,     // both
  relative_layer,    // layer_seconds over those of the baseline
  iteration_seconds,
  gain,  // iteration of the baseline over this one, less 1
  mfu,
  mfu_at_measured,  // of the measured time: a check of FLOPs and peak alone
  hfu_paper_at_measured,
  allocated_bytes,  // the peak rank's tensors, as torch.cuda.max_memory_allocated counts them
  reserved_bytes,   // what the allocator holds for them, as torch.cuda.max_memory_reserved counts it
  device_bytes,     // with what is not the allocator's, as nvidia-smi shows it
};

// Ratios are compared by their difference, in points; times and bytes by their relative error.
constexpr bool is_ratio(Measure measure) {
  return measure == Measure::relative_layer || measure == Measure::gain || measure == Measure::mfu ||
         measure == Measure::mfu_at_measured || measure == Measure::hfu_paper_at_measured;
}
constexpr bool is_bytes(Measure measure) {
  return measure == Measure::allocated_bytes || measure == Measure::reserved_bytes ||
         measure == Measure::device_bytes;
}

struct Figure {
  Measure measure{};
  double value = 0;
  double rounding = 0;  // half a unit of its last printed digit
  friend bool operator==(const Figure&, const Figure&) = default;
};

struct MeasuredCase {
  std::string source;  // "K22 table 5"
  std::string name;
  std::string baseline;  // name of the case of the same source that ratios refer to; empty without
  Request request;
  std::vector<Figure> figures;
  friend bool operator==(const MeasuredCase&, const MeasuredCase&) = default;
};

// What the absolute errors of one measure of a source must not exceed: parts of one, of the measured value or
// of one hundred points. Targets of one group are judged together.
struct Target {
  std::string group;  // "K22 table 4, one pass"
  std::string source;
  Measure measure{};
  std::optional<double> median;
  std::optional<double> mean;
  std::optional<double> worst;
  friend bool operator==(const Target&, const Target&) = default;
};

struct Comparison {
  std::string group;  // of its target; without one the source, and what else rows are grouped by
  std::string name;
  Measure measure{};
  double predicted = 0;
  double measured = 0;
  double error = 0;  // signed; parts of one
  std::optional<double>
      tolerance;  // of this row by itself, where the target has one: "worst", and at a measured
                  // time what the rounding of that time allows
  std::optional<bool> in_interval;  // whether the measured value is in its 80% interval, where there is one
  std::optional<StepRates> step_rates;  // of an iteration time: whose interval it has
  friend bool operator==(const Comparison&, const Comparison&) = default;
};

struct GroupSummary {
  std::string group;
  bool ratios = false;  // errors are in points
  std::size_t rows = 0;
  double median_absolute = 0;
  double mean_absolute = 0;
  double mean = 0;  // signed: the bias
  double worst_absolute = 0;
  std::size_t intervals = 0;  // rows with an 80% interval (plan/interval.hpp),
  std::size_t covered = 0;    // and those within
  std::optional<Target> target;
  bool met = true;  // rows within their tolerances, median and mean within theirs; or no target
  friend bool operator==(const GroupSummary&, const GroupSummary&) = default;
};

// A row for every figure, in order; those that no target claims are grouped by the traits too. Throws InputError, by case, when a request is not legal, and expects a
// system with performance figures, known baselines, and an iteration time beside what is computed of it.
std::vector<Comparison> compare(const std::vector<MeasuredCase>& cases, const std::vector<Target>& targets,
                                const Spreads& spreads, const std::vector<RunTrait>& traits = {});

// A summary of each group, in order of first appearance.
std::vector<GroupSummary> summarize(const std::vector<Comparison>& rows, const std::vector<Target>& targets);

// Of an even count the mean of the middle two. Expects at least one value.
double median(std::vector<double> values);

// Whether an error stays within its tolerance; the rounding of a double is forgiven.
bool within(double error, double tolerance);

template <>
inline constexpr std::array<Spelling<Measure>, 12> spellings<Measure>{{
    {Measure::forward_seconds, "forward_seconds"},
    {Measure::backward_seconds, "backward_seconds"},
    {Measure::layer_seconds, "layer_seconds"},
    {Measure::relative_layer, "relative_layer"},
    {Measure::iteration_seconds, "iteration_seconds"},
    {Measure::gain, "gain"},
    {Measure::mfu, "mfu"},
    {Measure::mfu_at_measured, "mfu_at_measured"},
    {Measure::hfu_paper_at_measured, "hfu_paper_at_measured"},
    {Measure::allocated_bytes, "allocated_bytes"},
    {Measure::reserved_bytes, "reserved_bytes"},
    {Measure::device_bytes, "device_bytes"},
}};

}  // namespace headroom

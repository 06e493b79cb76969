// Compares measured runs with predictions: the measured figure, the predicted one, the signed error, and
// whether the errors of a group stay within their target.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/run_groups.hpp"
#include "headroom/core/names.hpp"
#include "headroom/core/watch.hpp"
#include "headroom/plan/interval.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// Measurable figures: seconds, bytes, and ratios as fractions of one.
enum class Measure : std::uint8_t {
  forward_seconds,   // one layer and microbatch on one GPU, without waiting for launches
  backward_seconds,  // recomputation included
  layer_seconds,     // forward and backward
  relative_layer,    // layer_seconds over those of the baseline
  iteration_seconds,
  gain,  // iteration time of the baseline over this one, minus 1
  mfu,
  mfu_at_measured,  // from the measured time: checks FLOPs and peak alone
  hfu_paper_at_measured,
  allocated_bytes,  // tensors of the peak rank, by torch.cuda.max_memory_allocated
  reserved_bytes,   // memory of the allocator, by torch.cuda.max_memory_reserved
  device_bytes,     // with non-torch memory, by nvidia-smi
};

// Returns whether a measure is a ratio. Ratios are compared by their difference, in points; times and bytes
// by their relative error.
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
  double rounding = 0;  // half a unit of the last printed digit
  friend bool operator==(const Figure&, const Figure&) = default;
};

struct MeasuredCase {
  std::string source;  // "K22 table 5"
  std::string name;
  std::string baseline;  // name of the case of the same source that ratios refer to; empty: none
  Request request;
  std::vector<Figure> figures;
  friend bool operator==(const MeasuredCase&, const MeasuredCase&) = default;
};

// Upper bounds for the absolute errors of one measure of a source: fractions of the measured value, or of 100
// points. Targets of one group are judged together.
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
  std::string group;  // of its target; without a target, the source and the other grouping traits
  std::string name;
  Measure measure{};
  double predicted = 0;
  double measured = 0;
  double error = 0;  // signed; a fraction of one
  // Largest error of this row, if its target has a "worst"; plus the rounding of a measured time.
  std::optional<double> tolerance;
  std::optional<bool> in_interval;      // whether the measured value is in the 80% interval, if there is one
  bool fits = true;                     // settled_verdict() of the run, which had the memory that it took
  std::optional<StepRates> step_rates;  // rates that the interval of an iteration time depends on
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
  std::size_t intervals = 0;  // rows with an 80% interval (plan/interval.hpp)
  std::size_t covered = 0;    // rows whose measured value is in the interval
  std::optional<Target> target;
  bool met = true;  // all rows, median and mean are within their tolerances, or there is no target
  friend bool operator==(const GroupSummary&, const GroupSummary&) = default;
};

// Returns a row for every figure, in order. Figures without a target are grouped by source and `traits`.
// Throws InputError, by case, if a request is not legal. Expects a system with performance figures, known
// baselines, and an iteration time with every figure computed from it.
std::vector<Comparison> compare(const std::vector<MeasuredCase>& cases, const std::vector<Target>& targets,
                                const Spreads& spreads, const std::vector<RunTrait>& traits = {},
                                const Watch& watch = {});

// Returns a summary of each group, in order of first appearance.
std::vector<GroupSummary> summarize(const std::vector<Comparison>& rows, const std::vector<Target>& targets);

// Returns the median; for an even count, the mean of the middle two. Expects at least one value.
double median(std::vector<double> values);

// Returns whether an error stays within its tolerance, apart from floating-point rounding.
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

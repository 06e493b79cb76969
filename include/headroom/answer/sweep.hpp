// Questions of `headroom sweep` and `headroom sweep plan`: a row for each point of a grid.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/answer/grid.hpp"
#include "headroom/core/error.hpp"
#include "headroom/parallel/edits.hpp"
#include "headroom/plan/capacity.hpp"
#include "headroom/search/choice.hpp"
#include "headroom/search/search.hpp"

namespace headroom {

// Question at each point: evaluate a given strategy, or find the best.
enum class SweepKind : std::uint8_t { estimate, plan };

// Figures of a point, in base units; unknown ones are absent. Counts are doubles that hold integers.
struct SweepFigures {
  std::optional<double> devices;
  std::optional<double> peak_rank;
  std::optional<double> peak_bytes;
  std::optional<double> headroom_bytes;  // negative if it does not fit
  std::optional<double> iteration_seconds;
  std::optional<double> low_iteration_seconds;  // the two ends of the interval for a measured time
  std::optional<double> high_iteration_seconds;
  std::optional<double> mfu;
  std::optional<double> hfu;
  std::optional<double> tokens_per_second;
  std::optional<double> tokens_per_second_per_device;
  std::optional<double> days;  // of a training run, if tokens are given; then the ends of the interval
  std::optional<double> low_days;
  std::optional<double> high_days;
  std::optional<double> price;
  std::optional<double> low_price;
  std::optional<double> high_price;
  std::optional<double> kilowatt_hours;
  std::optional<double> goodput;    // fraction of the days that makes progress
  std::optional<double> evaluated;  // strategies that a search evaluated, then those that fit
  std::optional<double> feasible;
  friend bool operator==(const SweepFigures&, const SweepFigures&) = default;
};

// A figure, by its name in files and reports, which ends in the unit.
struct SweepFigure {
  std::string_view name;
  std::optional<double> SweepFigures::*figure;
};
inline constexpr std::array<SweepFigure, 21> sweep_figures{{
    {"devices", &SweepFigures::devices},
    {"peak_rank", &SweepFigures::peak_rank},
    {"peak_bytes", &SweepFigures::peak_bytes},
    {"headroom_bytes", &SweepFigures::headroom_bytes},
    {"iteration_seconds", &SweepFigures::iteration_seconds},
    {"low_iteration_seconds", &SweepFigures::low_iteration_seconds},
    {"high_iteration_seconds", &SweepFigures::high_iteration_seconds},
    {"mfu", &SweepFigures::mfu},
    {"hfu", &SweepFigures::hfu},
    {"tokens_per_second", &SweepFigures::tokens_per_second},
    {"tokens_per_second_per_device", &SweepFigures::tokens_per_second_per_device},
    {"days", &SweepFigures::days},
    {"low_days", &SweepFigures::low_days},
    {"high_days", &SweepFigures::high_days},
    {"price", &SweepFigures::price},
    {"low_price", &SweepFigures::low_price},
    {"high_price", &SweepFigures::high_price},
    {"kilowatt_hours", &SweepFigures::kilowatt_hours},
    {"goodput", &SweepFigures::goodput},
    {"evaluated", &SweepFigures::evaluated},
    {"feasible", &SweepFigures::feasible},
}};

struct SweepRow {
  std::optional<Verdict> verdict;  // absent: there is a problem
  // Best strategy of a search, or the nearest to fitting if none fits, as edits of the defaults of the
  // point's stack.
  std::optional<Edits> strategy;
  SweepFigures figures;
  std::vector<Problem> problems;  // rules that the point breaks
  friend bool operator==(const SweepRow&, const SweepRow&) = default;
};

bool fits(const SweepRow& row);

// Returns the problems on one line: "tensor_parallel: must divide heads; ...". Returns an empty text without
// problems.
std::string problem_text(const SweepRow& row);

// Question about a strategy or, with a space, about the best strategy of a search.
struct PointQuestion {
  Request request;
  std::optional<Space> space;
  Training training;                   // cost of a training run, if its tokens are known
  RankedBy by = RankedBy::preference;  // how to choose among plans equal within noise
};

// Answers the question of a point. Throws InputError if the strategy is not legal; row_at() makes a row of
// that.
SweepRow answer(const PointQuestion& question, const Watch& watch = {});

SweepRow row_of(const Evaluation& evaluation, const Training& training = {});
SweepRow row_of(const Request& base, const SearchResult& result, const Training& training = {});

// Properties that all points share.
struct SweepHead {
  SweepKind kind = SweepKind::estimate;
  std::vector<std::string> arguments;  // flags of every point
  Grid grid;
  // Figures of a training run in the rows, besides days.
  bool with_days = false;
  bool with_prices = false;
  bool with_failures = false;
  // Set if no point changes them.
  std::optional<Transformer> model;
  std::optional<System> system;
  std::optional<Software> software;
};

// Returns the question for values of the grid's fields, in the order of fields_of(). Throws InputError with
// the errors in the values.
using PointAt = std::function<PointQuestion(const std::vector<std::string>& values)>;

// Returns the points of `base` with varied fields of the strategy and the workload. Throws InputError if the
// grid has another field.
PointAt varied(PointQuestion base, const Grid& grid);

// A whole sweep.
struct SweepQuestion {
  SweepHead head;
  PointAt at;
};

struct SweepReply {
  SweepHead head;
  std::vector<SweepRow> rows;  // by point
};

SweepReply answer(const SweepQuestion& question);

// Returns whether anything fits at any point.
bool fits(const SweepReply& reply);

// Returns the row of one point, with its problems if there are any. For sweeps whose rows are computed on
// several threads or printed one by one. Expects 0 <= point < point_count().
// A search that the watch stops gives a row that is not to be used.
SweepRow row_at(const Grid& grid, const PointAt& at, std::int64_t point, const Watch& watch = {});

// Returns the row of a point from the line of JSON that a report wrote for it (report/sweep.hpp). Throws
// InputError at `where` if the text is not such a line.
SweepRow parse_row(const SweepHead& head, std::int64_t point, const std::string& text,
                   const std::string& where);

}  // namespace headroom

// A row for each point of a grid: the questions of `headroom sweep` and `headroom sweep plan`.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/answer/grid.hpp"
#include "headroom/core/error.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/capacity.hpp"
#include "headroom/search/search.hpp"

namespace headroom {

// What is asked at each point: how a given strategy does, or which is the best.
enum class SweepKind : std::uint8_t { estimate, plan };

// The figures of a point, in base units; those that are not known are absent. Counts are doubles that hold integers.
struct SweepFigures {
  std::optional<double> devices;
  std::optional<double> peak_rank;
  std::optional<double> peak_bytes;
  std::optional<double> headroom_bytes;  // negative where it does not fit
  std::optional<double> iteration_seconds;
  std::optional<double> low_iteration_seconds;  // the interval in which a measured one should lie
  std::optional<double> high_iteration_seconds;
  std::optional<double> mfu;
  std::optional<double> hfu;
  std::optional<double> tokens_per_second;
  std::optional<double> tokens_per_second_per_device;
  std::optional<double> days;  // of a training run, where tokens are given; and both ends of its interval
  std::optional<double> low_days;
  std::optional<double> high_days;
  std::optional<double> price;
  std::optional<double> low_price;
  std::optional<double> high_price;
  std::optional<double> kilowatt_hours;
  std::optional<double> goodput;    // the part of the days that makes progress
  std::optional<double> evaluated;  // strategies of a search, and those of them that fit
  std::optional<double> feasible;
  friend bool operator==(const SweepFigures&, const SweepFigures&) = default;
};

// A figure by the name that files and reports have for it, with the unit.
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
  std::optional<Verdict> verdict;  // none: there is a problem
  // That a search found best, or, where none fits, nearest to fitting: what makes it of the defaults of the point's stack.
  std::optional<Edits> strategy;
  SweepFigures figures;
  std::vector<Problem> problems;  // the rules that the point breaks
  friend bool operator==(const SweepRow&, const SweepRow&) = default;
};

bool fits(const SweepRow& row);

// The problems on a line, "tensor_parallel: must divide heads; ..."; empty without any.
std::string problem_text(const SweepRow& row);

// A strategy or, with a space, the best of a search.
struct PointQuestion {
  Request request;
  std::optional<Space> space;
  Training training;  // what a training run takes, where its tokens are known
};

// Throws InputError where the strategy is not legal; a row can be made of that too.
SweepRow answer(const PointQuestion& question);

SweepRow row_of(const Evaluation& evaluation, const Training& training = {});
SweepRow row_of(const Request& base, const SearchResult& result, const Training& training = {});

// What the points have in common.
struct SweepHead {
  SweepKind kind = SweepKind::estimate;
  std::vector<std::string> arguments;  // of every point, as flags
  Grid grid;
  // What points say of a training run, beside days.
  bool with_days = false;
  bool with_prices = false;
  bool with_failures = false;
  // Those of which no point changes anything.
  std::optional<Transformer> model;
  std::optional<System> system;
  std::optional<Software> software;
};

// What is asked where the fields of a grid have these values, which are in the order of fields_of(). Throws InputError
// with what is wrong with them.
using PointAt = std::function<PointQuestion(const std::vector<std::string>& values)>;

// The points of `base` with other values of fields of the strategy and of the workload. Throws InputError where the grid
// has a field that is of neither.
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

// Whether anything fits at any point.
bool fits(const SweepReply& reply);

// The row of one point alone, which says what is wrong with the point where something is: for a sweep whose rows are
// worked out on several threads, or printed as they come. Expects 0 <= point < point_count().
SweepRow row_at(const Grid& grid, const PointAt& at, std::int64_t point);

// The row that a report wrote for a point as one line of JSON (report/sweep.hpp). Throws InputError at `where` when the
// text is not one.
SweepRow parse_row(const SweepHead& head, std::int64_t point, const std::string& text,
                   const std::string& where);

}  // namespace headroom

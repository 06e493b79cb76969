// The report of `headroom sweep`: a row for each point of a grid, printed as it comes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/answer/grid.hpp"
#include "headroom/report/table.hpp"
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
  std::optional<double> mfu;
  std::optional<double> hfu;
  std::optional<double> tokens_per_second;
  std::optional<double> tokens_per_second_per_device;
  std::optional<double> evaluated;  // strategies of a search, and those of them that fit
  std::optional<double> feasible;
  friend bool operator==(const SweepFigures&, const SweepFigures&) = default;
};

struct SweepRow {
  std::optional<Verdict> verdict;  // none: there is a problem
  std::string strategy;  // that a search found best, or, where none fits, nearest to fitting; as flags
  SweepFigures figures;
  std::string problem;  // the rules that the point breaks
  friend bool operator==(const SweepRow&, const SweepRow&) = default;
};

bool fits(const SweepRow& row);

SweepRow row_of(const Evaluation& evaluation);
SweepRow row_of(const Request& base, const SearchResult& result);
SweepRow row_of(const InputError& error);

// What the points have in common.
struct SweepHead {
  SweepKind kind = SweepKind::estimate;
  std::vector<std::string> arguments;  // of every point, as flags
  Grid grid;
  // Those of which no point changes anything.
  std::optional<Transformer> model;
  std::optional<System> system;
  std::optional<Software> software;
};

// A row as one line of JSON, without the end of the line; schemas/sweep.schema.json. Doubles read back as they were.
std::string json_line(const SweepHead& head, std::int64_t point, const SweepRow& row);

// The row that json_line() wrote for a point. Throws InputError at `where` when the text is not one.
SweepRow parse_row(const SweepHead& head, std::int64_t point, const std::string& text,
                   const std::string& where);

// Prints rows in the order of their points. An aligned table needs all rows before it knows its widths, and comes whole
// at the end; the other formats keep nothing.
class SweepPrinter {
 public:
  // Keeps a reference to the head.
  SweepPrinter(const SweepHead& head, Format format);

  // The text before the first row, of the next row, and after the last.
  std::string start();
  std::string row(std::int64_t point, const SweepRow& row);
  std::string end();

 private:
  const SweepHead& head_;
  Format format_;
  bool first_ = true;
  Table table_;
};

}  // namespace headroom

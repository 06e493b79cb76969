// Report of `headroom sweep`: a row for each point of a grid, printed as soon as it is known.
#pragma once

#include <optional>
#include <string>

#include "headroom/answer/sweep.hpp"
#include "headroom/report/stop.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Returns a row as one line of JSON (`headroom schema sweep`), without the newline. Doubles read back exactly
// (parse_row()).
std::string json_line(const SweepHead& head, std::int64_t point, const SweepRow& row);

// Prints rows in the order of their points. An aligned table is printed at the end, since its widths depend
// on all rows; the other formats store no rows.
class SweepPrinter {
 public:
  // Keeps a reference to the head.
  SweepPrinter(const SweepHead& head, const Style& style);

  // Return the text before the first row, of the next row, and after the last row, if the sweep was stopped
  // with that.
  std::string start();
  std::string row(std::int64_t point, const SweepRow& row);
  std::string end(const std::optional<Stop>& stop = {});

 private:
  const SweepHead& head_;
  Style style_;
  bool first_ = true;
  std::int64_t rows_ = 0;
  Table table_;
};

// Renders the whole reply at once.
std::string render(const SweepReply& reply, const Style& style);

}  // namespace headroom

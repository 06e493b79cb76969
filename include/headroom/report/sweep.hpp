// The report of `headroom sweep`: a row for each point of a grid, printed as it comes.
#pragma once

#include <string>

#include "headroom/answer/sweep.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// A row as one line of JSON, without the end of the line; `headroom schema sweep`. Doubles read back as they were
// (parse_row()).
std::string json_line(const SweepHead& head, std::int64_t point, const SweepRow& row);

// Prints rows in the order of their points. An aligned table needs all rows before it knows its widths, and comes whole
// at the end; the other formats keep nothing.
class SweepPrinter {
 public:
  // Keeps a reference to the head.
  SweepPrinter(const SweepHead& head, const Style& style);

  // The text before the first row, of the next row, and after the last.
  std::string start();
  std::string row(std::int64_t point, const SweepRow& row);
  std::string end();

 private:
  const SweepHead& head_;
  Style style_;
  bool first_ = true;
  Table table_;
};

// All of it at once.
std::string render(const SweepReply& reply, const Style& style);

}  // namespace headroom

// The report of `headroom validate`: how well groups of predictions meet their targets, and the rows they are
// made of, the bad ones first.
#pragma once

#include <string>
#include <vector>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

struct ValidationReport {
  std::vector<GroupSummary> groups;
  std::vector<Comparison> rows;
  std::vector<SkippedRun> skipped;
  bool all = false;  // tables show every row, not the worst of each group; JSON and CSV always do
};

// Whether every group with a target meets it.
bool met(const ValidationReport& report);

std::string render(const ValidationReport& report, Format format);

}  // namespace headroom

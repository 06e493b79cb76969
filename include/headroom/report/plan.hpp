// Report of `headroom plan`: the best strategies of a search space, the Pareto front, and what was rejected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/answer/plan.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Wall-clock seconds of the search alone, and of the whole answer.
struct AnswerTiming {
  double search_seconds = 0;
  double elapsed_seconds = 0;
};

// Additional contents of a report.
struct PlanWords {
  // Command that estimates a plan, for each compared system, without batch and strategy.
  std::vector<std::string> estimates;
  std::string why;         // strategy that the user asked about, as flags
  std::size_t shown = 10;  // plans in a table
  std::optional<AnswerTiming> timing;
};

// Renders the plans. JSON follows `headroom schema plan` and holds the fully evaluated plans; CSV holds the
// best plans, in base units.
std::string render(const PlanReply& report, const PlanWords& asked, const Style& style);

}  // namespace headroom

// Report of `headroom plan`: the best strategies of a search space, the Pareto front, and what was rejected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/answer/plan.hpp"
#include "headroom/report/stop.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Wall-clock seconds of the search, with all that finds and confirms the plans; of what is said of them; of rendering
// that; and of the whole answer, with reading the question.
struct AnswerTiming {
  double search_seconds = 0;
  double explanation_seconds = 0;
  double output_seconds = 0;
  double elapsed_seconds = 0;
};

// Additional contents of a report.
struct PlanWords {
  // Command that estimates a plan, for each compared system, without batch and strategy.
  std::vector<std::string> estimates;
  std::optional<Strategy> launched;  // of the launch file that these commands name
  std::string why;                   // strategy that the user asked about, as flags
  std::size_t shown = 10;            // plans in a table
  std::size_t trials = 0;            // asked for
  std::optional<AnswerTiming> timing;
  Stop stop = {};  // if the search is undecided
};

// Renders the plans. JSON follows `headroom schema plan` and holds the fully evaluated plans; CSV holds the
// best plans, in base units.
std::string render(const PlanReply& report, const PlanWords& asked, const Style& style);

// Returns how far a search came that was stopped, on one line without its end; empty if it was finished.
std::string undecided_text(const PlanReply& report, const PlanWords& asked);

}  // namespace headroom

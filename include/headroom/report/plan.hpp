// The report of `headroom plan`: the best strategies of a space, the Pareto front, and what was rejected.
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

// What a report says beside the reply.
struct PlanWords {
  // The command that looks closer, on each system that is compared, without batch and strategy.
  std::vector<std::string> estimates;
  std::string why;         // the strategy that was asked about, as flags
  std::size_t shown = 10;  // plans in a table
  std::optional<AnswerTiming> timing;
};

// JSON follows `headroom schema plan`, and holds the plans that are accounted for in full; CSV holds the best plans, in
// base units.
std::string render(const PlanReply& report, const PlanWords& asked, const Style& style);

}  // namespace headroom

// Report of `headroom estimate`: memory of every pipeline rank against capacity.
#pragma once

#include <string>

#include "headroom/answer/estimate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Additional text of a report.
struct EstimateWords {
  std::string estimate;  // the command of this estimate, which JSON names; empty: not shown
  std::string plan;      // command that searches all strategies on as many GPUs; empty: not shown
};

// Renders the estimate. JSON follows `headroom schema estimate`; CSV and Markdown hold the table of ranks, in
// bytes and GiB. The formats for readers draw the schedule if the reply has it.
std::string render(const EstimateReply& report, const EstimateWords& words, const Style& style);

}  // namespace headroom

// The report of `headroom estimate`: memory of every pipeline rank against capacity.
#pragma once

#include <string>

#include "headroom/answer/estimate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// What a reply is shown with, beside itself.
struct EstimateWords {
  std::string plan;  // the command that searches all strategies of the same devices; empty: none is named
};

// JSON follows `headroom schema estimate`; CSV and Markdown hold the table of ranks, in bytes and GiB. The formats
// for reading draw the schedule where the reply has it.
std::string render(const EstimateReply& report, const EstimateWords& words, const Style& style);

}  // namespace headroom

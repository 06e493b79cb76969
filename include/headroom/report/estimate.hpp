// The report of `headroom estimate`: memory of every pipeline rank against capacity.
#pragma once

#include <string>

#include "headroom/answer/estimate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// JSON follows schemas/estimate.schema.json; CSV and Markdown hold the table of ranks, in bytes and GiB. The formats
// for reading draw the schedule where the reply has it.
std::string render(const EstimateReply& report, const Style& style);

}  // namespace headroom

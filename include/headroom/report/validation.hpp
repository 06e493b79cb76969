// The report of `headroom validate`: how well groups of predictions meet their targets, and the rows they are
// made of, the bad ones first.
#pragma once

#include <string>

#include "headroom/answer/validate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// `all`: a table shows every row, not only the worst of each group; JSON and CSV always do.
std::string render(const ValidateReply& report, const Style& style, bool all = false);

}  // namespace headroom

// Report of `headroom validate`: how well groups of predictions meet their targets, and the rows of each
// group, the worst first.
#pragma once

#include <string>

#include "headroom/answer/validate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Renders the validation. With `all`, a table shows every row, not only the worst of each group; JSON and CSV
// always hold every row.
std::string render(const ValidateReply& report, const Style& style, bool all = false);

}  // namespace headroom

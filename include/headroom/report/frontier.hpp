// The report of `headroom frontier`: memory against time over what is recomputed.
#pragma once

#include <string>

#include "headroom/answer/frontier.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// JSON follows `headroom schema frontier`; CSV holds the points, in base units. `all`: a table has every point, not
// only the best exchanges.
std::string render(const FrontierReply& report, const Style& style, bool all = false);

}  // namespace headroom

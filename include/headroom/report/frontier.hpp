// Report of `headroom frontier`: memory against time for different recomputations.
#pragma once

#include <string>

#include "headroom/answer/frontier.hpp"
#include "headroom/report/stop.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Renders the frontier, and how it was stopped, if it was. JSON follows `headroom schema frontier`; CSV holds the points, in base units. With
// `all`, a table has every point, not only the best trade-offs.
std::string render(const FrontierReply& report, const Style& style, bool all = false, const Stop& stop = {});

}  // namespace headroom

// A picture of a recomputation frontier: iteration time against peak memory, as SVG that a browser shows.
#pragma once

#include <string>

#include "headroom/answer/frontier.hpp"

namespace headroom {

// Both families of the frontier, the named policies, and the budgets. Expects at least one point.
std::string frontier_picture(const FrontierReply& report);

}  // namespace headroom

// Plot of a recomputation frontier: iteration time against peak memory, as SVG for a browser.
#pragma once

#include <string>

#include "headroom/answer/frontier.hpp"

namespace headroom {

// Draws both families of the frontier, the named policies and the budgets. Expects at least one point.
std::string frontier_picture(const FrontierReply& report);

}  // namespace headroom

// The report of `headroom calibrate --from-runs`: the efficiencies that were fitted, and what that does to the error of
// every run.
#pragma once

#include <string>

#include "headroom/answer/calibrate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

std::string render(const CalibrateToRunsReply& reply, const Style& style);

}  // namespace headroom

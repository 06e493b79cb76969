// Report of `headroom calibrate --from-runs`: the fitted efficiencies, and the error of every run before and
// after.
#pragma once

#include <string>

#include "headroom/answer/calibrate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

std::string render(const CalibrateToRunsReply& reply, const Style& style);

}  // namespace headroom

// The answer to `headroom plan --why`: what is wrong with a strategy.
#pragma once

#include <string>

#include "headroom/report/plan.hpp"

namespace headroom {

// Expects a report with an inquiry.
std::string inquiry_text(const PlanReport& report);

}  // namespace headroom

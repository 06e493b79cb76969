// The JSON of `headroom plan`.
#pragma once

#include "headroom/report/plan.hpp"
#include "report/json.hpp"

namespace headroom {

OrderedJson plan_json(const PlanReply& report, const PlanWords& asked);

}  // namespace headroom

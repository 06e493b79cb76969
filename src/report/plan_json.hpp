// The JSON of `headroom plan`.
#pragma once

#include "headroom/report/plan.hpp"
#include "report/json.hpp"

namespace headroom {

// A strategy with its figures. `outlook`: null where the strategy only comes near.
OrderedJson point_json(const PlanReply& report, const PlanWords& asked, const Candidate& candidate,
                       const Outlook* outlook);

OrderedJson plan_json(const PlanReply& report, const PlanWords& asked);

}  // namespace headroom

// The JSON of `headroom estimate` and of each entry of a plan.
#pragma once

#include "headroom/plan/remedies.hpp"
#include "headroom/report/estimate.hpp"
#include "report/json.hpp"

namespace headroom {

OrderedJson estimate_json(const EstimateReport& report);

}  // namespace headroom

// The JSON of `headroom estimate` and of each entry of a plan.
#pragma once

#include "headroom/answer/estimate.hpp"
#include "headroom/plan/remedies.hpp"
#include "report/json.hpp"

namespace headroom {

OrderedJson interval_json(const IterationInterval& interval);

OrderedJson warnings_json(const Plan& plan);

OrderedJson launch_json(const Launch& launch);

OrderedJson estimate_json(const EstimateReply& report);

}  // namespace headroom

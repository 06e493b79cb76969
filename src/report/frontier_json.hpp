// The JSON of `headroom frontier`.
#pragma once

#include "headroom/answer/frontier.hpp"
#include "headroom/report/stop.hpp"
#include "report/json.hpp"

namespace headroom {

OrderedJson frontier_json(const FrontierReply& report, const Stop& stop);

}  // namespace headroom

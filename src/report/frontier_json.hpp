// The JSON of `headroom frontier`.
#pragma once

#include "headroom/report/frontier.hpp"
#include "report/json.hpp"

namespace headroom {

OrderedJson frontier_json(const FrontierReport& report);

}  // namespace headroom

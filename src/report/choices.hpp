// Judged choices among measured strategies, for the report of `headroom validate`.
#pragma once

#include <string>

#include "headroom/answer/validate.hpp"
#include "headroom/report/table.hpp"
#include "report/json.hpp"

namespace headroom {

// A summary, the groups in which the choice was not the best (all of them if `all`), and the shared errors.
std::string choices_text(const JudgedChoices& judged, const Style& style, bool all);

OrderedJson choices_json(const JudgedChoices& judged);

}  // namespace headroom

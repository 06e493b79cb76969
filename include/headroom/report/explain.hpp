// Report of `headroom explain`: the op table, what each op saves and why, and the expressions of the sums.
#pragma once

#include <string>

#include "headroom/answer/explain.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Renders the explanation. JSON follows `headroom schema explain`; CSV holds a row for each saved tensor.
std::string render(const ExplainReply& explanation, const Style& style);

}  // namespace headroom

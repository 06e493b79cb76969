// The report of `headroom explain`: the op table with what each op stores and why, and the expressions it adds up to.
#pragma once

#include <string>

#include "headroom/answer/explain.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// JSON follows `headroom schema explain`; CSV holds a row for each stored tensor.
std::string render(const ExplainReply& explanation, const Style& style);

}  // namespace headroom

// Report of `headroom compare`: two plans for the same model, term by term.
#pragma once

#include <string>

#include "headroom/answer/compare.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Renders the comparison. `change` names the second plan: the flags that turn the first plan into the second.
// JSON follows `headroom schema compare`.
std::string render(const CompareReply& comparison, const std::string& change, const Style& style);

}  // namespace headroom

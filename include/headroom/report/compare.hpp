// The report of `headroom compare`: two plans for the same model, term by term.
#pragma once

#include <string>

#include "headroom/answer/compare.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// `change` is what to call the second beside the first: the flags that make the one of the other. JSON follows
// `headroom schema compare`.
std::string render(const CompareReply& comparison, const std::string& change, const Style& style);

}  // namespace headroom

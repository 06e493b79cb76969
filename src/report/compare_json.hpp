// The JSON of `headroom compare`, and the terms of a comparison for others.
#pragma once

#include "headroom/answer/compare.hpp"
#include "report/json.hpp"

namespace headroom {

// {"time": terms, "memory": terms}: each with before, after and difference.
OrderedJson terms_json(const CompareReply& comparison);

}  // namespace headroom

// The report of `headroom explain` as JSON.
#pragma once

#include "headroom/answer/explain.hpp"
#include "report/json.hpp"

namespace headroom {

OrderedJson explain_json(const ExplainReply& explanation);

// Returns whether the model has more than one kind of layer.
bool has_several_kinds(const ExplainReply& explanation);

}  // namespace headroom

// The report of `headroom explain` as JSON.
#pragma once

#include "headroom/answer/explain.hpp"
#include "report/json.hpp"

namespace headroom {

OrderedJson explain_json(const ExplainReply& explanation);

// Whether its layers are of more than one kind.
bool has_several_kinds(const ExplainReply& explanation);

}  // namespace headroom

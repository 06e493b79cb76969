// The report of `headroom explain` as JSON.
#pragma once

#include <optional>
#include <vector>

#include "headroom/answer/explain.hpp"
#include "headroom/expr/symbol.hpp"
#include "report/json.hpp"

namespace headroom {

OrderedJson explain_json(const ExplainReply& explanation);

struct ExplainedLetter {
  Notation notation;
  std::optional<double> value;  // absent: each kind of layer has its own
};

// Returns the letters that a run has a use for.
std::vector<ExplainedLetter> letters_of(const ExplainReply& explanation);

// Returns whether the model has more than one kind of layer.
bool has_several_kinds(const ExplainReply& explanation);

}  // namespace headroom

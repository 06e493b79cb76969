// What a rank keeps for each parameter, in symbols: the reply of `headroom explain` about weights, gradients and optimizer state.
// memory/state.hpp counts the same in numbers.
#pragma once

#include <vector>

#include "headroom/answer/explain.hpp"

namespace headroom {

std::vector<ExplainedState> explain_state(const ExplainQuestion& question, const Bindings& letters);

// In the narrow type that linears multiply; two where no device is known.
int copies_of_weights(const ExplainQuestion& question);

}  // namespace headroom

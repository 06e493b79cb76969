// What a rank keeps for each parameter, in symbols: the reply of `headroom explain` about weights, gradients and optimizer state.
// memory/state.hpp counts the same in numbers.
#pragma once

#include <vector>

#include "headroom/answer/explain.hpp"

namespace headroom {

std::vector<ExplainedState> explain_state(const Transformer& model, const Strategy& strategy,
                                          const Software& software, const Bindings& letters);

}  // namespace headroom

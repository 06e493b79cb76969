// Which adapters a model and a strategy can have.
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Every rule that is broken, by the name of a field. Sizes of the strategy may be below 1.
std::vector<Problem> adapter_illegalities(const Transformer& model, const Strategy& strategy);

}  // namespace headroom

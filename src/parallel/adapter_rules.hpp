// Which adapters a model and a strategy admit. For legality.cpp.
#pragma once

#include "headroom/parallel/strategy.hpp"
#include "parallel/rules.hpp"

namespace headroom {

void check_adapters(Rules& rules, const Transformer& model, const Strategy& strategy);

}  // namespace headroom

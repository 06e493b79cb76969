// A strategy as the flags of `headroom estimate`.
#pragma once

#include <string>

#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Where a command names the model and the stack, whose own defaults need no flags.
std::string strategy_flags(const Strategy& strategy, const Software& software, const Transformer& model);

}  // namespace headroom

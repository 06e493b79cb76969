// A strategy as the flags of `headroom estimate`.
#pragma once

#include <string>

#include "headroom/hardware/software.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Returns the flags for a command that names the model and the stack, whose defaults need no flags.
std::string strategy_flags(const Strategy& strategy, const Software& software, const Transformer& model);

}  // namespace headroom

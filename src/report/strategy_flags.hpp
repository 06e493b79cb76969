// A strategy as the flags of `headroom estimate`.
#pragma once

#include <string>

#include "headroom/parallel/strategy.hpp"

namespace headroom {

std::string strategy_flags(const Strategy& strategy);

}  // namespace headroom

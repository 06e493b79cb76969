// What a training stack has no way to run.
#pragma once

#include <string_view>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// The field of an offload that a stack cannot leave to the host; empty where it can.
std::string_view offload_lacking(const Software& software, const Offload& offload);

// Of a strategy whose sizes are legal (parallel/legality.hpp): every rule that is broken, by field.
std::vector<Problem> stack_illegalities(const Software& software, const Strategy& strategy);

// What a stack divides where nobody says it: the least that it has.
DataSharding least_sharding(const Software& software);

}  // namespace headroom

// What a training stack has no way to run.
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Of a strategy whose sizes are legal (parallel/legality.hpp): every rule that is broken, by field.
// Whether a stack can leave that to the host.
bool has_offload(const Software& software, const Offload& offload);

std::vector<Problem> stack_illegalities(const Software& software, const Strategy& strategy);

// What a stack divides where nobody says it: the least that it has.
DataSharding least_sharding(const Software& software);

}  // namespace headroom

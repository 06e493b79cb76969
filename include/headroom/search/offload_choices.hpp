// What strategies of a space leave to the host (parallel/offload.hpp).
#pragma once

#include <vector>

#include "headroom/search/space.hpp"

namespace headroom {

// What the request leaves there or, where the space tries more: nothing, the optimizer, shards of weights with it where the stack has
// them, each with activations of some modules. Throws InputError where the system then tells of no host.
std::vector<Offload> offload_choices(const Request& base, const Space& space);

}  // namespace headroom

// Offloading choices of a space (parallel/offload.hpp).
#pragma once

#include <vector>

#include "headroom/search/space.hpp"

namespace headroom {

// Returns the request's offloading or, if the space tries more: nothing, the optimizer, and the optimizer
// with sharded weights where the stack has them, each with activations of some modules. Throws InputError if
// more is tried and the system describes no host.
std::vector<Offload> offload_choices(const Request& base, const Space& space);

}  // namespace headroom

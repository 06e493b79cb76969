// What of a strategy's offloading to the host (parallel/offload.hpp) can run.
#pragma once

#include <string>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

std::vector<Problem> offload_illegalities(const Transformer& model, const Strategy& strategy);

// Why the modules or layers that a strategy offloads cannot be under a recomputation, its own or another; empty where they can.
std::string offload_rule(const Transformer& model, const Strategy& strategy, const Recomputation& recompute);

// On a system: what is offloaded needs a host.
std::vector<Problem> offload_illegalities(const System& system, const Strategy& strategy);

}  // namespace headroom

// What of a strategy's offloading to the host (parallel/offload.hpp) can run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

std::vector<Problem> offload_illegalities(const Transformer& model, const Strategy& strategy);

// Why modules cannot be offloaded under a recomputation; empty where they can.
std::string_view offload_rule(const std::vector<std::string>& modules, const Recomputation& recompute);

// On a system: what is offloaded needs a host.
std::vector<Problem> offload_illegalities(const System& system, const Strategy& strategy);

}  // namespace headroom

// Which optimizers, and which dtypes of what they keep, a model and a strategy can have.
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Every rule that is broken, by the name of a field.
std::vector<Problem> optimizer_illegalities(const Transformer& model, const Strategy& strategy);

// What is wrong with them on this system: hosts to offload to, of which nothing is known.
std::vector<Problem> offload_illegalities(const System& system, const Strategy& strategy);

}  // namespace headroom

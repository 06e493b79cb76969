// Whether the linears of a model can multiply in the type that a strategy says: on a device, and with its extents.
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// What is wrong with the precision of a strategy of this model and batch, as illegalities() says it (legality.hpp), which asks
// this. Its sizes may be below 1.
std::vector<Problem> precision_illegalities(const Transformer& model, const Strategy& strategy,
                                            const Workload& workload);

// What is wrong with it on this system: arithmetic that its devices, where they are known, do not have.
std::vector<Problem> precision_illegalities(const System& system, const Strategy& strategy);

}  // namespace headroom

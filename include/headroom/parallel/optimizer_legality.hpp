// Which optimizers, and which dtypes of what they keep, a model and a strategy can have.
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Every rule that is broken, by the name of a field.
std::vector<Problem> optimizer_illegalities(const Transformer& model, const Strategy& strategy,
                                            const Software& software);

// Whether replicas that divide so can be stepped: Adafactor's factors need rows and columns, Muon whole matrices.
bool steps_with(OptimizerKind optimizer, DataSharding sharding);

}  // namespace headroom

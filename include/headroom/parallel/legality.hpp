// Whether a strategy can run a model on a batch, and why not.
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// What is wrong with running this strategy on this model and batch, each problem named by its field: the rules
// of Megatron-LM's argument checks. Empty when it is legal; everything below expects that. The ops that a strategy may name are
// those that a stack makes of the model's layers.
std::vector<Problem> illegalities(const Transformer& model, const Strategy& strategy,
                                  const Workload& workload, const Software& software);

}  // namespace headroom

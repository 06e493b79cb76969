// How ranks may share the experts of a model [Megatron-LM, core/parallel_state.py, core/transformer/moe/moe_layer.py,
// token_dispatcher.py].
#pragma once

#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// What is wrong with a strategy's expert parallelism, as illegalities() says it (legality.hpp), which asks this. Its sizes may
// be below 1.
std::vector<Problem> expert_illegalities(const Transformer& model, const Strategy& strategy);

}  // namespace headroom

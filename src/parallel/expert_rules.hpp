// Which expert-parallel ranks, dispatchers and overlaps a model admits [Megatron-LM, core/parallel_state.py,
// core/transformer/moe/moe_layer.py, token_dispatcher.py]. For legality.cpp.
#pragma once

#include "headroom/parallel/strategy.hpp"
#include "parallel/rules.hpp"

namespace headroom {

// Says nothing where a number of ranks is below 1, which is reported as such.
void check_experts(Rules& rules, const Transformer& model, const Strategy& strategy);

}  // namespace headroom

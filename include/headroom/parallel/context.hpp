// Context parallelism of a strategy: which ranks of a group exchange heads, and what is legal [Megatron-LM,
// training/arguments.py; Transformer Engine, attention/dot_product_attention/context_parallel.py].
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// U: context-parallel ranks that change tokens for heads among each other. By default of a2a_p2p as many as the key/value
// heads of a tensor-parallel rank allow, since what they exchange is less than a ring passes on.
std::int64_t context_inner(const Transformer& model, const Strategy& strategy);

// The rules of context parallelism that a strategy breaks.
std::vector<Problem> context_illegalities(const Transformer& model, const Strategy& strategy,
                                          const Workload& workload);

}  // namespace headroom

// Context parallelism of a strategy: which ranks of a group exchange heads, and how they may attend
// [Megatron-LM, training/arguments.py; Transformer Engine,
// attention/dot_product_attention/context_parallel.py].
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/parallel/strategy.hpp"

namespace headroom {

// U: context-parallel ranks that change tokens for heads among each other. By default of a2a_p2p as many as
// the key/value heads of a tensor-parallel rank allow, since what they exchange is less than a ring passes
// on.
std::int64_t context_inner(const Transformer& model, const Strategy& strategy);

// Whether context-parallel ranks may attend so in a layer: only all-to-all has kernels for sinks, and only it
// and all-gather for windows and chunks.
bool admits(const Architecture& layer, CpComm how);

// How context-parallel ranks may attend in all layers of a model: p2p and the others, or what sliding windows
// and attention sinks leave of them.
std::vector<CpComm> admitted_cp_comm(const Transformer& model);

// Sequences from this length on are tried in parts by default, of at least so many tokens each: below it
// keeping all of a sequence on a rank costs little, and a ring shows beside the attention to shorter parts.
inline constexpr std::int64_t long_sequence = 32'768;
inline constexpr std::int64_t shortest_part = 4'096;

// The most parts of a sequence of that length that are tried by default: 1 where it is short, or where
// attention cannot be divided.
std::int64_t most_parts(const Transformer& model, std::int64_t sequence);

}  // namespace headroom

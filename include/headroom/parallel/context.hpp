// Context parallelism of a strategy: the ranks of a group that exchange heads, and the kinds of communication
// that attention allows [Megatron-LM, training/arguments.py; Transformer Engine,
// attention/dot_product_attention/context_parallel.py].
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Returns U, the number of context-parallel ranks that exchange tokens for heads. The default for a2a_p2p is
// as many as the key/value heads of a TP rank allow, since an all-to-all sends less than a ring.
std::int64_t context_inner(const Transformer& model, const Strategy& strategy);

// Returns whether attention of a layer can use this communication. Attention sinks need all-to-all. Windows
// and chunks need all-to-all or all-gather.
bool admits(const Architecture& layer, CpComm how);
// Returns whether attention of a layer can use any of these kinds. An empty list stands for all kinds.
bool admits_any(const Architecture& layer, const std::vector<CpComm>& kinds);

// Returns the kinds of communication that all layers of a model can use: all kinds, or those that sliding
// windows and attention sinks allow.
std::vector<CpComm> admitted_cp_comm(const Transformer& model);

// Searches split sequences from `long_sequence` tokens on by default, into parts of at least `shortest_part`
// tokens. In shorter sequences, keeping the whole sequence on a rank costs little. With shorter parts,
// attention is too short to hide a ring.
inline constexpr std::int64_t long_sequence = 32'768;
inline constexpr std::int64_t shortest_part = 4'096;

// A wide search (search/widen.hpp) splits sequences of any length into parts of at least so many tokens: the
// rows of a tile of flash attention [arXiv 2307.08691, section 3.3]. Shorter parts leave tiles partly empty.
inline constexpr std::int64_t shortest_wide_part = 128;

// Returns whether attention of all layers can be split into parts of the sequence: not if it keeps its scores.
bool attends_in_parts(const Transformer& model);

// Returns the largest number of parts that a search splits a sequence of this length into by default. Returns
// 1 if the sequence is short, or if attention cannot be split.
std::int64_t most_parts(const Transformer& model, std::int64_t sequence);

}  // namespace headroom

// Time of a flash attention kernel: tiles of queries, each of which goes past the keys that its mask leaves it, spread over
// the multiprocessors of the device, under its power limit and the memory side of the roofline.
//
//   score    = smooth maximum of (head_size + value_size) / speed and softmax_width      in elements of head size
//   step     = 2 x y score / (tile_peak / multiprocessors)                               a tile of x queries past y keys
//   tile     = steps x step + tile_fill
//   work     = max(longest tile, tiles x tile / multiprocessors + last_tile x longest tile)
//   kernel   = launch + max(work / clock, bytes / memory bandwidth, FLOPs / (speed x power_cap x clock))
//
// The products of a score run on the tensor cores and its exponential beside them, so that the longer of the two counts
// most. The backward pass computes the scores again and runs five products where the forward pass runs two
// [FlashAttention, arXiv:2205.14135], at a rate of its own.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

enum class Mask : std::uint8_t { none, causal, window };  // window: causal, and of the last keys only
enum class AttentionPass : std::uint8_t { forward, backward };

struct Attention {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     // of queries
  std::int64_t kv_heads = 1;  // of keys and values; only bytes depend on them
  std::int64_t queries = 1;   // of each head: those of one rank
  double keys = 1;            // that a query meets, a causal mask counted whole (keys_met)
  std::int64_t head_size = 1;
  std::int64_t value_size = 1;
  Mask mask = Mask::causal;
  Dtype dtype = Dtype::half;  // of both products
  friend bool operator==(const Attention&, const Attention&) = default;
};

// Of the scores that the mask leaves.
Flops attention_flops(const Attention& attention, AttentionPass pass);

// Queries, keys, values and the output, each read or written once; the backward pass their gradients as well.
Bytes attention_bytes(const Attention& attention, AttentionPass pass);

// `bytes` are those that the kernel moves. `clock` scales arithmetic: 1 for a burst, FlashRates::sustained in a training
// step.
Seconds attention_time(const Attention& attention, AttentionPass pass, Bytes bytes,
                       const Performance& performance, double clock);

// Whether the rates were fitted on kernels of this size.
bool within_fit(const Attention& attention, const FlashRates& rates);

template <>
inline constexpr std::array<Spelling<Mask>, 3> spellings<Mask>{{
    {Mask::none, "none"},
    {Mask::causal, "causal"},
    {Mask::window, "window"},
}};
template <>
inline constexpr std::array<Spelling<AttentionPass>, 2> spellings<AttentionPass>{{
    {AttentionPass::forward, "forward"},
    {AttentionPass::backward, "backward"},
}};

// Factor on the rates of flash attention in a training step: the clock, times how fast the stack's kernels are.
double attention_clock(const Performance& performance, const Software& software, AttentionPass pass);

}  // namespace headroom

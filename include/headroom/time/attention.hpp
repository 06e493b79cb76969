// Time of a flash attention kernel. Each tile of queries visits the keys that its mask leaves. Tiles are
// spread over the multiprocessors, under the device's power limit and the memory side of the roofline.
//
//   score    = smooth maximum of (head_size + value_size) / speed and softmax_width  in elements of head size
//   step     = 2 x y score / (tile_peak / multiprocessors)                        a tile of x queries, y keys
//   tile     = steps x step + tile_fill
//   work     = max(longest tile, tiles x tile / multiprocessors + last_tile x longest tile)
//   kernel   = launch + max(work / clock, bytes / memory bandwidth, FLOPs / (speed x power_cap x clock))
//
// The GEMMs of a score run on the tensor cores and its exponential beside them, so the longer of the two
// counts most. The backward pass computes the scores again and runs five GEMMs where the forward pass runs
// two [FlashAttention, arXiv:2205.14135]. Its GEMMs have a speed of their own.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

enum class Mask : std::uint8_t { none, causal, window };  // window: causal, over the last keys only
enum class AttentionPass : std::uint8_t { forward, backward };

struct Attention {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     // query heads
  std::int64_t kv_heads = 1;  // key and value heads; only bytes depend on them
  std::int64_t queries = 1;   // queries of each head on one rank
  double keys = 1;            // keys that a query meets, counted without the causal mask (keys_met)
  std::int64_t head_size = 1;
  std::int64_t value_size = 1;
  Mask mask = Mask::causal;
  Dtype dtype = Dtype::half;  // of both GEMMs
  friend bool operator==(const Attention&, const Attention&) = default;
};

// Returns the FLOPs of the scores that the mask leaves.
Flops attention_flops(const Attention& attention, AttentionPass pass);

// Returns bytes of queries, keys, values and the output, each read or written once. In the backward pass
// their gradients count as well.
Bytes attention_bytes(const Attention& attention, AttentionPass pass);

// Returns the time of a kernel that moves `bytes`. `clock` scales FLOP rates: 1 for a burst,
// FlashRates::sustained in a training step.
Seconds attention_time(const Attention& attention, AttentionPass pass, Bytes bytes,
                       const Performance& performance, double clock);

// Returns whether the rates were fitted on kernels of this size.
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

// Returns the factor on FLOP rates of flash attention in a training step: the sustained clock times the
// relative speed of the stack's kernels.
double attention_clock(const Performance& performance, const Software& software, AttentionPass pass);

}  // namespace headroom

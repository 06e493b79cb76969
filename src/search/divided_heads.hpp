// Heads that tensor-parallel ranks divide, in layers of every kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "headroom/model/transformer.hpp"

namespace headroom {

// Returns the attention heads of a kind of layer. Of another mixer, returns the greatest number that divides all
// its divided sizes, or 0.
inline std::int64_t divided_heads(const LayerDescription& kind) {
  if (has_attention(kind.architecture)) return kind.heads;
  std::int64_t heads = 0;
  with_mixer(kind.architecture.mixers, [&](const auto& row, const auto& mixer) {
    for (const auto& size : row.sizes) {
      if (!size.divided.empty()) heads = std::gcd(heads, mixer.*size.member);
    }
  });
  return heads;
}

inline std::int64_t most_heads(const Transformer& model) {
  std::int64_t most = model.layer_kinds.empty() ? divided_heads(own_layer(model)) : 0;
  for (const LayerDescription& kind : model.layer_kinds) most = std::max(most, divided_heads(kind));
  return most;
}

inline bool divides_heads(std::int64_t t, const Transformer& model) {
  if (model.layer_kinds.empty()) return divided_heads(own_layer(model)) % t == 0;
  return std::all_of(model.layer_kinds.begin(), model.layer_kinds.end(),
                     [&](const LayerDescription& kind) { return divided_heads(kind) % t == 0; });
}

}  // namespace headroom

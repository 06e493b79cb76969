// What files say of a measured attention kernel, as the kernel that the time model knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/time/attention.hpp"

namespace headroom {

// Sets the keys that the queries of a whole sequence meet. A window of 0 is none. False for a window without a causal mask.
inline bool set_mask(Attention& attention, bool causal, std::int64_t window) {
  const auto sequence = static_cast<double>(attention.queries);
  const double met = keys_met(window, sequence);
  attention.keys = met;
  attention.mask = met < sequence ? Mask::window : causal ? Mask::causal : Mask::none;
  return causal || window == 0;
}

// Why no kernel is like it; nothing where one can be.
inline std::optional<std::string> refused(const Attention& attention) {
  if (attention.kv_heads > attention.heads) return "must have no more kv_heads than query_heads";
  if (!is_half(attention.dtype) && attention.dtype != Dtype::fp8)
    return "must be of attention in half or fp8 (dtype)";
  constexpr double most_scores = 1e18;
  const double scores = static_cast<double>(attention.batch) * static_cast<double>(attention.heads) *
                        static_cast<double>(attention.queries) * attention.keys;
  if (scores > most_scores) return "must be of no more than 1e18 scores (batch, query_heads, sequence)";
  return std::nullopt;
}

}  // namespace headroom

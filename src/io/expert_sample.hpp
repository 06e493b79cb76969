// What files say of a measured block of experts, as the block that the time model knows.
#pragma once

#include <optional>
#include <string>

#include "headroom/hardware/rates.hpp"
#include "headroom/time/expert_block.hpp"

namespace headroom {

// Why no block is like it; nothing where one can be.
inline std::optional<std::string> refused(const ExpertBlock& block) {
  if (block.top_k > block.experts) return "must have no more experts for a token (top_k) than experts";
  if (block.experts % block.expert_parallel != 0) return "must have experts that expert_parallel divides";
  if (block.feedforward % block.tensor_parallel != 0)
    return "must have an expert_feedforward that tensor_parallel divides";
  if (!is_half(block.dtype) && !narrow_index(block.dtype))
    return "must be of experts in half, fp8, fp8_blockwise, mxfp8 or nvfp4 (dtype)";
  if (expert_block_flops(block) > Flops(1e18)) return "must be of no more than 1e18 FLOPs";
  return std::nullopt;
}

}  // namespace headroom

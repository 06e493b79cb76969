// Time of kernels that only move memory, and of flash attention, which moves little and computes much.
#pragma once

#include "headroom/core/units.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// Bytes per second that a streaming kernel achieves.
inline BytesPerSecond streaming_bandwidth(const Performance& performance) {
  return performance.device.memory_bandwidth * performance.rates.streaming.bandwidth_share.value;
}

// max(shortest kernel, launch + bytes / bandwidth)
Seconds streaming_time(Bytes bytes, const Performance& performance);

// `flops` are those of both products without a mask. A causal kernel skips half of them; its backward pass runs five
// products where the forward runs two, since it computes the scores again [FlashAttention, arXiv:2205.14135].
enum class FlashPass { forward, backward };
Seconds flash_attention_time(FlashPass pass, Flops flops, Bytes bytes, const Performance& performance);

}  // namespace headroom

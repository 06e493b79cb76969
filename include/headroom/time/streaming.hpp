// Time of kernels that only move memory.
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

}  // namespace headroom

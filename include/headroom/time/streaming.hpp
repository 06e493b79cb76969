// Time of memory-bound kernels.
#pragma once

#include "headroom/core/units.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// Returns the bandwidth that a memory-bound kernel achieves.
inline BytesPerSecond streaming_bandwidth(const Performance& performance) {
  return performance.device.memory_bandwidth * performance.rates.streaming.bandwidth_share.value;
}

// Returns max(shortest kernel, launch + bytes / bandwidth).
Seconds streaming_time(Bytes bytes, const Performance& performance);

}  // namespace headroom

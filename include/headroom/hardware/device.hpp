// A device as its data sheet has it. Capacity and name stand in System, beside the figures' source.
#pragma once

#include <cstdint>

#include "headroom/core/units.hpp"

namespace headroom {

struct Device {
  std::int64_t multiprocessors = 1;
  FlopsPerSecond half_peak;  // dense fp16 or bf16 on the tensor cores; MFU is against this
  FlopsPerSecond fp32_peak;  // outside the tensor cores
  BytesPerSecond memory_bandwidth;
  BytesPerSecond link_bandwidth;  // to the other devices of the node, each direction
  friend bool operator==(const Device&, const Device&) = default;
};

}  // namespace headroom

// Data-sheet figures of a device. System holds its capacity and name, and the source of these figures.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/core/dtype.hpp"
#include "headroom/core/units.hpp"

namespace headroom {

struct Device {
  std::int64_t multiprocessors = 1;
  FlopsPerSecond half_peak;  // dense FP16 or BF16 on the tensor cores
  FlopsPerSecond fp32_peak;  // outside the tensor cores
  BytesPerSecond memory_bandwidth;
  BytesPerSecond link_bandwidth;  // to the other devices of the node, in each direction
  // Devices that are linked to this one directly, by one link each: at least all others of the node. Absent:
  // links go to switches.
  std::optional<std::int64_t> direct_peers;
  std::optional<FlopsPerSecond> fp8_peak;  // dense FP8 on the tensor cores; absent without FP8 cores
  std::optional<FlopsPerSecond> fp4_peak;  // dense NVFP4 on the tensor cores; absent without FP4 cores
  // Dense FP4 of AMD's devices, from the MI350 series on. Its blocks have 32 elements and scales that are
  // powers of two; NVFP4 has blocks of 16 with FP8 scales. No precision here runs GEMMs in it.
  std::optional<FlopsPerSecond> mxfp4_peak;
  friend bool operator==(const Device&, const Device&) = default;
};

// Returns the dense peak of GEMMs whose operands have `dtype`; zero where the device has none. MFU is
// measured against the peak of the model's compute_dtype. Expects a dtype that GEMMs can take.
constexpr FlopsPerSecond peak_of(const Device& device, Dtype dtype) {
  switch (arithmetic_of(dtype)) {
    case Arithmetic::fp4: return device.fp4_peak.value_or(FlopsPerSecond());
    case Arithmetic::fp8: return device.fp8_peak.value_or(FlopsPerSecond());
    case Arithmetic::half: return device.half_peak;
    case Arithmetic::fp32: return device.fp32_peak;
    case Arithmetic::none: break;
  }
  EXPECTS(!"a type that matrix products are made of");
  return {};
}

// Returns whether the device's GEMMs scale blocks of 32 elements, those of MXFP8 and FP4.
constexpr bool scales_blocks(const Device& device) { return device.fp4_peak || device.mxfp4_peak; }

// Returns how many copies of an operand the GEMMs of a dtype need: one to multiply by rows and one to
// multiply by columns. The scales of a block lie along one of the two directions. With per-tensor scales
// Hopper needs two copies as well, because its FP8 GEMMs read operands in one order only. Devices that scale
// blocks, from Blackwell on, read either order [Transformer Engine, pytorch/utils.py,
// is_non_tn_fp8_gemm_supported].
constexpr int copies_of_factor(const Device& device, Dtype dtype) {
  return dtype == Dtype::fp8 && scales_blocks(device) ? 1 : 2;
}

// Returns the share of the device's links that a group of `ranks` devices of its node can use, itself among
// them. Switches give all of them to any group. Direct links give one for each of the others; a device alone
// uses none, and gets 1.
constexpr double share_of_links(const Device& device, double ranks) {
  if (!device.direct_peers || ranks <= 1) return 1;
  return (ranks - 1) / static_cast<double>(*device.direct_peers);
}

constexpr bool has_peak(const Device& device, Dtype dtype) {
  return arithmetic_of(dtype) != Arithmetic::none && peak_of(device, dtype) > FlopsPerSecond(0);
}

}  // namespace headroom

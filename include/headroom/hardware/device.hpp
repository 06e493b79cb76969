// A device as its data sheet has it. Capacity and name stand in System, beside the figures' source.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/core/dtype.hpp"
#include "headroom/core/units.hpp"

namespace headroom {

struct Device {
  std::int64_t multiprocessors = 1;
  FlopsPerSecond half_peak;  // dense fp16 or bf16 on the tensor cores
  FlopsPerSecond fp32_peak;  // outside the tensor cores
  BytesPerSecond memory_bandwidth;
  BytesPerSecond link_bandwidth;           // to the other devices of the node, each direction
  std::optional<FlopsPerSecond> fp8_peak;  // dense, on the tensor cores, where the device has one
  std::optional<FlopsPerSecond> fp4_peak;  // likewise, of NVFP4
  // Likewise, of AMD's FP4 from the MI350 series on. It takes blocks of 32 with scales that are powers of two; NVFP4
  // has blocks of 16 with FP8 scales. No precision here multiplies it.
  std::optional<FlopsPerSecond> mxfp4_peak;
  friend bool operator==(const Device&, const Device&) = default;
};

// Of products whose factors are of that type; zero where the device has none. MFU is against the one of a model's
// compute_dtype.
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

// Whether its products scale blocks of 32: MXFP8's and FP4's.
constexpr bool scales_blocks(const Device& device) { return device.fp4_peak || device.mxfp4_peak; }

// Copies of a factor that products of a type take, one to be multiplied by rows and one by columns. Scales of blocks lie along
// one of the two. With a scale a tensor Hopper takes two as well, whose FP8 products read factors in one order only; the devices
// that scale blocks, from Blackwell on, read either [Transformer Engine, pytorch/utils.py, is_non_tn_fp8_gemm_supported].
constexpr int copies_of_factor(const Device& device, Dtype dtype) {
  return dtype == Dtype::fp8 && scales_blocks(device) ? 1 : 2;
}

constexpr bool has_peak(const Device& device, Dtype dtype) {
  return arithmetic_of(dtype) != Arithmetic::none && peak_of(device, dtype) > FlopsPerSecond(0);
}

}  // namespace headroom

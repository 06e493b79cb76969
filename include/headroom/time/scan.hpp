// Time of the kernels of a scan over a sequence, from the bytes they move (model/scan.hpp). They do not reach
// the device's memory bandwidth. Their bandwidth follows from the number of multiprocessors.
//
// The convolution's rate is that of causal_conv1d_fn on H100, B200 and GB200: 18 to 20 GB/s a multiprocessor
// [aiconfigurator, measured tables of gated-delta-net layers]. The other kernels were measured on H100 alone,
// in the forward pass: 12.6 million tokens a second with 128 heads of 64, one group, states of 128, chunks of
// 256 and a sequence of 8,192 [vllm-project/vllm, #27299, comment of 2025-10-25]. The backward pass and other
// devices are assumed to be as fast per multiprocessor.
#pragma once

#include "headroom/core/units.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/model/scan.hpp"

namespace headroom {

inline constexpr BytesPerSecond convolution_bandwidth{18e9};  // of one multiprocessor

Seconds scan_time(const ScanWork& work, const Performance& performance);

}  // namespace headroom

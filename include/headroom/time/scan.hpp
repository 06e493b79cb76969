// Time of a Mamba-2 scan's kernels, from the bytes they move [state-spaces/mamba,
// ops/triton/ssd_combined.py]. They do not reach the device's memory bandwidth. Their bandwidth follows from
// the number of multiprocessors.
//
//   forward    convolution; running sums of dt A; states of chunks; their sums; C with B in chunks; outputs
//   backward   all of these but the outputs again, and the gradients of each
//
// The convolution's rate is that of causal_conv1d_fn on H100, B200 and GB200: 18 to 20 GB/s a multiprocessor
// [aiconfigurator, measured tables of gated-delta-net layers]. The other kernels were measured on H100 alone,
// in the forward pass: 12.6 million tokens a second with 128 heads of 64, one group, states of 128, chunks of
// 256 and a sequence of 8,192 [vllm-project/vllm, #27299, comment of 2025-10-25]. The backward pass and other
// devices are assumed to be as fast per multiprocessor.
#pragma once

#include <cstdint>

#include "headroom/core/units.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/time/attention.hpp"

namespace headroom {

inline constexpr BytesPerSecond scan_bandwidth{10e9};         // of one multiprocessor
inline constexpr BytesPerSecond convolution_bandwidth{18e9};  // of one multiprocessor

// Sizes of a scan on one rank.
struct Scan {
  double tokens = 0;
  double heads = 0;
  double head_size = 0;
  double groups = 0;
  double state_size = 0;
  double chunk_size = 1;
  friend bool operator==(const Scan&, const Scan&) = default;
};

// Returns bytes of the convolution of x, B and C.
Bytes convolution_bytes(const Scan& scan, AttentionPass pass);

// Returns bytes of all other kernels. Values have 16 bits. States, scores, dt and their gradients are FP32
// until they become operands of GEMMs.
Bytes scan_bytes(const Scan& scan, AttentionPass pass);

// Returns how many kernels the host launches, including those of plain framework operators.
std::int64_t scan_kernels(AttentionPass pass);

Seconds scan_time(const Scan& scan, AttentionPass pass, const Performance& performance);

}  // namespace headroom

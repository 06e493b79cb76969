// Time of the kernels of a Mamba-2 scan, by the bytes that they move [state-spaces/mamba, ops/triton/ssd_combined.py]. They are
// short of the memory bandwidth of their device: how many bytes a second follows from its multiprocessors.
//
//   forward    convolution; running sums of dt A; states of chunks; their sums; C with B in chunks; outputs
//   backward   all of these but the outputs again, and the gradients of each
//
// The rate of the convolution is that of causal_conv1d_fn on H100, B200 and GB200: 18 to 20 GB/s a multiprocessor [aiconfigurator,
// measured tables of gated-delta-net layers]. That of the others was measured on H100 alone, in the forward pass: 12.6 million
// tokens a second with 128 heads of 64, one group, states of 128 and chunks of 256, a sequence of 8,192 [vllm-project/vllm, #27299,
// comment of 2025-10-25]. Other devices and the backward pass are assumed to be as fast by multiprocessor.
#pragma once

#include <cstdint>

#include "headroom/core/units.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/time/attention.hpp"

namespace headroom {

inline constexpr BytesPerSecond scan_bandwidth{10e9};         // of a multiprocessor
inline constexpr BytesPerSecond convolution_bandwidth{18e9};  // likewise

// On one rank.
struct Scan {
  double tokens = 0;
  double heads = 0;
  double head_size = 0;
  double groups = 0;
  double state_size = 0;
  double chunk_size = 1;
  friend bool operator==(const Scan&, const Scan&) = default;
};

// Of x, B and C, convolved.
Bytes convolution_bytes(const Scan& scan, AttentionPass pass);

// Of all other kernels. Values are of 16 bits; states, scores, dt and their gradients of fp32 until they are factors of products.
Bytes scan_bytes(const Scan& scan, AttentionPass pass);

// Kernels that the host launches, those of plain operators of the framework among them.
std::int64_t scan_kernels(AttentionPass pass);

Seconds scan_time(const Scan& scan, AttentionPass pass, const Performance& performance);

}  // namespace headroom

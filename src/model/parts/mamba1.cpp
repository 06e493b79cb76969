#include "headroom/model/parts/mamba1.hpp"

namespace headroom {
namespace {

// Bytes of a value of each channel of a token, of 16 bits.
double channel_values(const Scan& scan) { return 2 * scan.heads * scan.head_size; }

}  // namespace

// x, steps and z of each channel, and B and C, are read; both outputs are written, before the gate and after it
// [state-spaces/mamba, csrc/selective_scan/selective_scan_fwd_kernel.cuh].
ScanWork mamba1_forward(const Scan& scan) {
  const double shared = 2 * 2 * scan.state_size;  // B and C
  return {.bytes = scan.tokens * (5 * channel_values(scan) + shared),
          .kernels = 1,
          .bandwidth = mamba1_bandwidth};
}

// x, steps, z, the output before the gate and its gradient are read; gradients of x, steps and z are written,
// those of B and C in FP32.
ScanWork mamba1_backward(const Scan& scan) {
  const double shared = (2 * 2 + 2 * 4) * scan.state_size;
  return {.bytes = scan.tokens * (8 * channel_values(scan) + shared),
          .kernels = 1,
          .bandwidth = mamba1_bandwidth};
}

}  // namespace headroom

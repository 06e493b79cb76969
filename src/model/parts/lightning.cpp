#include "headroom/model/parts/lightning.hpp"

namespace headroom {
namespace {

// Bytes of q, k, v or a gradient of a token, of 16 bits.
double lightning_values(const Scan& scan) { return 2 * scan.heads * scan.head_size; }

// States of blocks in FP32, a token.
double block_states(const Scan& scan) {
  return 4 * scan.heads * scan.head_size * scan.state_size / scan.chunk_size;
}

}  // namespace

// One kernel takes the blocks of a head one after another and keeps its state on chip: q, k and v are read,
// the output is written [OpenNLPLab/lightning-attention, ops/triton/lightning_attn2.py].
ScanWork lightning_forward(const Scan& scan) {
  return {.bytes = scan.tokens * 4 * lightning_values(scan), .kernels = 1, .bandwidth = lightning_bandwidth};
}

// Two kernels, within blocks and across them. Each reads q, k, v and the output's gradient and writes the
// gradients of q, k and v; the second reads those of the first too.
ScanWork lightning_backward(const Scan& scan) {
  return {
      .bytes = scan.tokens * (7 * lightning_values(scan) + 10 * lightning_values(scan) + block_states(scan)),
      .kernels = 2,
      .bandwidth = lightning_bandwidth};
}

}  // namespace headroom

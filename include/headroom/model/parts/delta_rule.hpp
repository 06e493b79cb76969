// Kernels that mixers of the gated delta rule share [Yang et al., arXiv:2412.06464; Kimi Team,
// arXiv:2510.26692]. They take a sequence in chunks and compute the states of the chunks one after another
// [fla-org/flash-linear-attention, ops/gated_delta_rule/chunk.py, ops/kda/chunk.py].
//
// Two constants price them. Both are fitted to forward kernels: 3,415 measured times of
// chunk_gated_delta_rule with sequences from 1,024 tokens, on H100, B200, B300, GB200 and GB300
// [aiconfigurator, tables of gated-delta-net layers]. Median residuals are -16%, +8%, +1%, -2% and +2%. H200
// was left out of the fit: its median is -31% and its 90th percentile 234%, since its large kernels were
// measured at half the rate of an H100's, for no known reason. Backward kernels and those of Kimi Delta
// Attention are assumed to be as fast.
#pragma once

#include "headroom/model/op_builder.hpp"
#include "headroom/model/scan.hpp"

namespace headroom {

inline constexpr std::int64_t delta_chunk = 64;         // tokens [fla, chunk_size]
inline constexpr BytesPerSecond delta_bandwidth{18e9};  // of one multiprocessor
inline constexpr Seconds delta_step{2e-6};              // per chunk, if too few heads fill the device

// Returns the GEMMs of every token and head: scores of keys and of queries with keys, and w from keys, in
// chunks; a state with queries, w and keys; u and the output from values in chunks. Causal scores are counted
// in full.
constexpr FixedVector<MatrixProduct, 3> delta_products(const Monomial& key_size) {
  using namespace symbols;
  return {of_chunks(3 * H, key_size, delta_chunk), of_chunks(3 * H, key_size, P),
          of_chunks(H, 2 * delta_chunk, P)};
}

}  // namespace headroom

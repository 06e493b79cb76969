// The optimizer's step, once an iteration: from zeroing gradients to casting weights. Casts of weights to
// fewer than 16 bits count here, although the first microbatch runs them. The step consists of memory-bound
// kernels and, for Muon, the GEMMs that orthogonalize its updates.
#pragma once

#include "headroom/memory/state.hpp"
#include "headroom/time/op_work.hpp"

namespace headroom {

// Newton-Schulz iterations of Muon [Megatron-LM, --muon-num-ns-steps, its default].
inline constexpr int newton_schulz_steps = 5;

// Return the FLOPs and the time of orthogonalizing one matrix in BF16. A step computes X X^T, its square and
// the product with X, where X has no more rows than columns. It takes 4 p^2 q + 2 p^3 FLOPs for p rows and q
// columns [NVIDIA-NeMo/Emerging-Optimizers, orthogonalized_optimizers/muon_utils.py].
Flops newton_schulz_flops(double rows, double columns);
Seconds newton_schulz_time(double rows, double columns, const Performance& performance,
                           const Software& software);

// Returns the time of a step. `held` are a rank's parameters; with data sharding, the rank may step only a
// part. `matrices` are those in matrices, for optimizers that treat matrices differently
// (memory/matrices.hpp).
Seconds optimizer_time(const Parameters& held, const Strategy& strategy, const Workload& workload,
                       const Performance& performance, const Software& software = {},
                       const MatrixList& matrices = {});

// Returns the part of a step that the device runs even if the host steps: zeroing gradients, and casting
// weights to fewer than 16 bits.
Seconds unstepped_time(const Parameters& held, const Strategy& strategy, const Workload& workload,
                       const Performance& performance, const Software& software = {});

}  // namespace headroom

// The optimizer's step, once an iteration, from zeroing the gradients to casting the weights, also to fewer than 16 bits (which
// the first microbatch does). Kernels that move memory, and of Muon the products that orthogonalize its updates.
#pragma once

#include "headroom/memory/state.hpp"
#include "headroom/time/op_work.hpp"

namespace headroom {

// Newton-Schulz iterations of Muon [Megatron-LM, --muon-num-ns-steps, its default].
inline constexpr int newton_schulz_steps = 5;

// Of one matrix, in BF16: X X^T, its square and the product with X, with X of fewer rows than columns; a step takes
// 4 p^2 q + 2 p^3 FLOPs of p rows and q columns [NVIDIA-NeMo/Emerging-Optimizers, orthogonalized_optimizers/muon_utils.py].
Flops newton_schulz_flops(double rows, double columns);
Seconds newton_schulz_time(double rows, double columns, const Performance& performance,
                           const Software& software);

// `held` are the parameters of a rank, of which data sharding may step a part, and `matrices` those that are in matrices, for
// optimizers that step them as such (memory/matrices.hpp).
Seconds optimizer_time(const Parameters& held, const Strategy& strategy, const Workload& workload,
                       const Performance& performance, const Software& software = {},
                       const MatrixList& matrices = {});

// What of it a rank does wherever the step runs: zeroing gradients, and casting weights to fewer than 16 bits.
Seconds unstepped_time(const Parameters& held, const Strategy& strategy, const Workload& workload,
                       const Performance& performance, const Software& software = {});

}  // namespace headroom

// FLOPs of one iteration, GEMMs only [K22 appendix A]. Model FLOPs are what the model needs. Hardware FLOPs
// are what runs, recomputation included. Neither counts padding, or mask products, which only move tokens.
// MFU and HFU divide these by iteration time, number of GPUs and peak.
#pragma once

#include "headroom/core/vector_constexpr.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/compose.hpp"

namespace headroom {

namespace detail {

// Returns the forward FLOPs of `ops` for all B sequences of an iteration, summed over all ranks.
constexpr Expr iteration_flops(const OpTable& table, OpSet ops) {
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (table.ops()[i].kind == OpKind::mask_product) ops = ops & ~op_bit(i);
  }
  return forward_flops(table, {}, ops).substitute(Symbol::micro_batch, symbols::B);
}

// Returns the FLOPs that the backward passes of L layers recompute.
HEADROOM_VECTOR_CONSTEXPR Expr recompute_flops(const Architecture& architecture,
                                               const RecomputedOps& recomputed) {
  return symbols::L * iteration_flops(layer_ops(architecture), recomputed.ops);
}

}  // namespace detail

// Returns the model FLOPs of an iteration. The backward pass takes twice the forward pass: one GEMM for the
// input gradient and one for the weight gradient.
HEADROOM_VECTOR_CONSTEXPR Expr model_flops(const Architecture& architecture) {
  const OpTable layer = layer_ops(architecture);
  const OpTable head = head_ops(architecture);
  return 3 * (symbols::L * detail::iteration_flops(layer, every_op(layer)) +
              detail::iteration_flops(head, every_op(head)));
}

// Returns the hardware FLOPs of an iteration if every layer recomputes `recomputed`.
HEADROOM_VECTOR_CONSTEXPR Expr hardware_flops(const Architecture& architecture,
                                              const RecomputedOps& recomputed) {
  return model_flops(architecture) + detail::recompute_flops(architecture, recomputed);
}

// Returns the hardware FLOPs in the convention of K22, which counts a recomputation as if it had a backward
// pass of its own [K22 eq. 8]. Only for comparison with the HFU of the paper: a recomputation runs once.
HEADROOM_VECTOR_CONSTEXPR Expr hardware_flops_k22(const Architecture& architecture,
                                                  const RecomputedOps& recomputed) {
  return model_flops(architecture) + 3 * detail::recompute_flops(architecture, recomputed);
}

// Returns the model FLOPs of a model with any kinds of layers.
inline Expr model_flops_of(const ModelLayers& layers) {
  Expr forward;
  for (const LayerKind& kind : layers.kinds)
    forward += kind.count * detail::iteration_flops(kind.ops, every_op(kind.ops));
  return 3 * forward;
}

}  // namespace headroom

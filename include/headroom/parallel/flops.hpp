// FLOPs of one iteration, of matrix products only [K22 appendix A]. Model FLOPs are what the model needs;
// hardware FLOPs are what runs, recomputation included. MFU and HFU divide them by iteration time, devices and
// peak.
#pragma once

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/compose.hpp"

namespace headroom {

namespace detail {

// Forward FLOPs of the ops of a table for all B sequences of an iteration, on all ranks together.
constexpr Expr iteration_flops(const OpTable& table, OpSet ops) {
  return forward_flops(table, {}, ops).substitute(Symbol::micro_batch, symbols::B);
}

// What the backward passes of L layers run again.
constexpr Expr recompute_flops(const Architecture& architecture, const RecomputedOps& recomputed) {
  return symbols::L * iteration_flops(layer_ops(architecture), recomputed.ops);
}

}  // namespace detail

// The backward pass takes twice the forward: a product for the input gradient and one for the weight
// gradient.
constexpr Expr model_flops(const Architecture& architecture) {
  const OpTable layer = layer_ops(architecture);
  const OpTable head = head_ops(architecture);
  return 3 * (symbols::L * detail::iteration_flops(layer, every_op(layer)) +
              detail::iteration_flops(head, every_op(head)));
}

// With `recompute` in every layer.
constexpr Expr hardware_flops(const Architecture& architecture, const RecomputedOps& recomputed) {
  return model_flops(architecture) + detail::recompute_flops(architecture, recomputed);
}

// K22's convention, which counts a recomputation as if it had a backward pass of its own [K22 eq. 8]. For
// comparison with the paper's HFU only: a recomputation runs once.
constexpr Expr hardware_flops_k22(const Architecture& architecture, const RecomputedOps& recomputed) {
  return model_flops(architecture) + 3 * detail::recompute_flops(architecture, recomputed);
}

// Model FLOPs of layers of any kinds.
inline Expr model_flops_of(const ModelLayers& layers) {
  Expr forward;
  for (const LayerKind& kind : layers.kinds)
    forward += kind.count * detail::iteration_flops(kind.ops, every_op(kind.ops));
  return 3 * forward;
}

}  // namespace headroom

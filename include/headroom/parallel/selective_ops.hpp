// Selective activation checkpointing by op, as torchtitan does it
// [torchtitan/distributed/activation_checkpoint.py, SelectiveAC].
//
// A cache keeps the outputs of attention, of all-to-alls and reduce-scatters, and the choice of experts. It
// also keeps every other GEMM of a layer, in the order in which they run: the first, third and so on.
// Everything else is recomputed: normalizations, rotary positions, activations, gathers, routers, the GEMMs
// of experts (torchtitan does not count them as GEMMs) and the other GEMMs.
//
// q, k and v are separate GEMMs in torchtitan, as are gate and up, even if a table has one op for them.
// Experts that no other rank shares get their tokens without an all-to-all, so there is none to keep.
#pragma once

#include "headroom/parallel/compose.hpp"

namespace headroom {

namespace detail {

// Returns whether the exchanges of an op are kept: sends and sums among ranks, which would take as long
// again. Gathers are not kept.
constexpr bool is_cached_transfer(const Op& op, const Sharding& sharding) {
  if (op.kind != OpKind::transfer) return false;
  bool runs = false;
  for (const Exchange& exchange : op.exchanges) {
    if (!divided_along(sharding, exchange.axis)) continue;
    if (forward_kind(exchange.name) == CollectiveKind::all_gather) return false;
    runs = true;
  }
  return runs;
}

}  // namespace detail

constexpr RecomputedOps selective_ops(const OpTable& table, const Sharding& sharding) {
  RecomputedOps recomputed{.caches_reductions = true};
  int products = 0;
  const auto next_is_kept = [&] { return ++products % 2 == 1; };
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const Op& op = table.ops()[i];
    bool runs_again = true;
    const auto cache = [&](ValueSet& set, ValueId value) { set.insert(static_cast<std::size_t>(value)); };
    const bool attends = op.kind == OpKind::flash_attention || op.kind == OpKind::batched_matmul;
    if (attends || detail::is_cached_transfer(op, sharding)) {
      runs_again = false;
    } else if (op.name == "route") {
      for (const ValueId output : op.outputs) {
        if (table[output].name == "chosen experts") cache(recomputed.cached, output);
      }
    } else if (op.kind == OpKind::linear && op.name != "router" && op.weights != WeightClass::expert) {
      if (op.name == "qkv" && op.outputs.size() >= 3) {
        for (std::size_t part = 0; part < 3; ++part) {
          if (next_is_kept()) cache(recomputed.cached, op.outputs[part]);
        }
      } else if (op.merged == 2) {  // one of two adjacent GEMMs is kept
        products += 2;
        cache(recomputed.half_cached, op.outputs[0]);
      } else {
        runs_again = !next_is_kept();
      }
    }
    if (runs_again) recomputed.ops |= op_bit(i);
  }
  recomputed.discarded = recomputed.ops;
  return recomputed;
}

// Returns the recomputation without its last ops whose results no backward pass and no recomputation reads. A
// compiler leaves them out, with what only they read [PyTorch, torch/_functorch/partitioners.py,
// min_cut_rematerialization_partition]. A cache that is filled op by op keeps them.
constexpr RecomputedOps needed_of(RecomputedOps recomputed, const OpTable& table) {
  for (std::size_t i = table.ops().size(); i-- > 0;) {
    if ((recomputed.ops & op_bit(i)) == 0) continue;
    for (const ValueId output : table.ops()[i].outputs) {
      const ValueUse use = use_of(table, output);
      if (use.savers != 0 || (use.readers & recomputed.ops) != 0) return recomputed;
    }
    recomputed.ops = recomputed.ops & ~op_bit(i);
    recomputed.discarded = recomputed.discarded & ~op_bit(i);
  }
  return recomputed;
}

}  // namespace headroom

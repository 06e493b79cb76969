// Composes an op table with sharding and recomputation: returns what one TP rank stores and computes. The
// rules go by placements and by which op makes, saves or reads a value. There are no closed forms.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "headroom/core/bit_set.hpp"
#include "headroom/core/fixed_vector.hpp"
#include "headroom/core/vector_constexpr.hpp"
#include "headroom/expr/expr.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/parallel/recomputed_ops.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

// Bytes of random state that a checkpoint saves to recompute the same dropout masks: PyTorch's CPU generator
// [torch.get_rng_state().numel()]. The state lies in host memory even if the model is on a GPU.
inline constexpr std::int64_t checkpoint_random_state_bytes = 5056;

// A tensor that the backward pass needs.
struct StoredTensor {
  int op = nowhere;         // the first op that saves it
  ValueId value = nowhere;  // nowhere: the checkpoint's random state
  std::string_view name;
  std::string_view why;
  Dtype dtype = Dtype::half;
  Monomial bytes;         // on one rank
  bool kept = true;       // false: dropped and recomputed
  bool received = false;  // a copy that a collective received or sent
};

// A value has two entries if half of it is kept, or if it is kept both before and after a reduction.
using StoredTensors = std::vector<StoredTensor>;

// The ops of a table that produce, save and read a value.
struct ValueUse {
  OpSet producer = 0;         // at most one
  OpSet savers = 0;           // their backward passes need it
  OpSet split_savers = 0;     // savers that run on 1/t
  OpSet gathered_savers = 0;  // savers that keep the gathered value
  OpSet readers = 0;
  bool copy = false;  // below 16 bits, and no op reads it: savers can make it again
  friend bool operator==(const ValueUse&, const ValueUse&) = default;
};

constexpr ValueUse use_of(const OpTable& table, ValueId value) {
  ValueUse use;
  if (table[value].producer != nowhere)
    use.producer = op_bit(static_cast<std::size_t>(table[value].producer));
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const Op& op = table.ops()[i];
    for (const Save& save : op.saves) {
      if (save.value != value) continue;
      use.savers |= op_bit(i);
      if (op.region == Placement::split) use.split_savers |= op_bit(i);
      if (op.reads_gathered) use.gathered_savers |= op_bit(i);
    }
    if (op.inputs.contains(value)) use.readers |= op_bit(i);
  }
  use.copy = is_narrow(table[value].dtype) && use.readers == 0;
  return use;
}

// Fate of a value under a recomputation.
struct Fate {
  bool needed = false;    // a backward pass reads it, or a recomputation starts from it
  bool kept = false;      // from forward to backward; if needed and not kept: recomputed
  bool gathered = false;  // ops that run on 1/t need the kept or recomputed value
  bool whole = false;     // these ops keep the gathered value
  friend bool operator==(const Fate&, const Fate&) = default;
};

constexpr Fate fate_of(const ValueUse& use, const RecomputedOps& recomputed) {
  const bool copied_again = use.copy && use.savers != 0 && (use.savers & ~recomputed.ops) == 0;
  const bool made_again = copied_again || (use.producer & recomputed.ops) != 0;
  const bool recomputation_starts_from_it = !made_again && (use.readers & recomputed.ops) != 0;
  const bool kept =
      !made_again || ((use.producer & recomputed.discarded) == 0 && (use.savers & ~recomputed.ops) != 0);
  return {.needed = use.savers != 0 || recomputation_starts_from_it,
          .kept = kept,
          .gathered = (kept ? use.split_savers & ~recomputed.ops : use.split_savers) != 0,
          .whole = (kept ? use.gathered_savers & ~recomputed.ops : use.gathered_savers) != 0};
}

// Returns the placement of a value that is kept or recomputed.
constexpr Placement stored_placement(const Value& value, const Fate& fate, const Sharding& sharding,
                                     const RecomputedOps& recomputed) {
  if (value.placement != Placement::boundary) return value.placement;
  if (fate.whole || (sharding.save_gathered_input && fate.gathered)) return Placement::whole;
  return recomputed.shard_checkpoint && value.producer == nowhere ? Placement::split : Placement::boundary;
}

// A value of a table that can be stored, and the ops that use it. A copy that a collective brought, if an op
// keeps one, is a Storable of its own.
struct Storable {
  ValueId value = nowhere;
  ValueUse use;
  bool received = false;
};
using Storables = std::vector<Storable>;

// Returns the ops that keep a received copy of a value.
constexpr OpSet receivers_of(const OpTable& table, ValueId value, const Sharding& sharding) {
  OpSet ops;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const Op& op = table.ops()[i];
    if (!keeps_received(op, value, sharding)) continue;
    for (const Save& save : op.saves) {
      if (save.value == value) ops |= op_bit(i);
    }
  }
  return ops;
}

HEADROOM_VECTOR_CONSTEXPR Storables storables(const OpTable& table, const Sharding& sharding, Detail detail) {
  Storables result;
  for (std::size_t i = 0; i < table.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (table[id].detail == Detail::exact && detail == Detail::paper) continue;
    if (table[id].tensor_parallel_only && !sharding.tensor) continue;
    Storable local{id, use_of(table, id)};
    const OpSet receivers = receivers_of(table, id, sharding);
    if (receivers != 0) {
      result.push_back({.value = id,
                        .use = {.producer = receivers,
                                .savers = receivers,
                                .split_savers = local.use.split_savers & receivers,
                                .readers = receivers},
                        .received = true});
      local.use.savers = local.use.savers & ~receivers;
      local.use.split_savers = local.use.split_savers & ~receivers;
    }
    result.push_back(local);
  }
  return result;
}

// A storable value that is kept or recomputed.
struct StoredValue {
  std::size_t index = 0;  // in Storables
  Placement placement = Placement::boundary;
  bool kept = true;
  bool pinned = false;  // not needed, but shares an allocation with a view that is kept
  bool half = false;    // only half of the value
};

// Returns whether a value is the output of a reduce-scatter: a linear on 1/t of the weights with its output
// in sequence shards.
constexpr bool is_scattered(const OpTable& table, ValueId value, const Sharding& sharding) {
  if (!sharding.tensor || !sharding.sequence || table[value].producer == nowhere) return false;
  const Op& op = table.ops()[static_cast<std::size_t>(table[value].producer)];
  return op.kind == OpKind::linear && op.region == Placement::split &&
         table[value].placement == Placement::boundary && op.outputs[0] == value;
}

// Calls visit(StoredValue) for each of `values` that the backward pass of a table needs. Everything that
// lists or counts stored tensors uses this rule. The members of a buffer are kept together, so `values` has
// all of them or none. The random state of a checkpoint is not included.
template <class Visit>
constexpr void visit_stored(const OpTable& table, std::span<const Storable> values, const Sharding& sharding,
                            const RecomputedOps& recomputed, Detail detail, Visit visit) {
  BitSet<OpTable::max_values> kept_buffers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value& value = table[values[i].value];
    Fate fate = fate_of(values[i].use, recomputed);
    if (!values[i].received) {
      const auto id = static_cast<std::size_t>(values[i].value);
      const bool scattered = recomputed.caches_reductions && is_scattered(table, values[i].value, sharding);
      if (recomputed.cached.contains(id) || scattered) fate.needed = fate.kept = true;
      // The output of the linear itself is kept too: partial sums, for all tokens.
      if (scattered && (values[i].use.producer & recomputed.ops) == 0)
        visit(StoredValue{.index = i, .placement = Placement::whole});
      if (recomputed.half_cached.contains(id)) {
        visit(StoredValue{.index = i, .placement = value.placement, .half = true});
        visit(StoredValue{.index = i, .placement = value.placement, .kept = false, .half = true});
        continue;
      }
    }
    if (!fate.needed) continue;
    visit(StoredValue{
        .index = i, .placement = stored_placement(value, fate, sharding, recomputed), .kept = fate.kept});
    if (fate.kept && value.buffer != nowhere && !values[i].received)
      kept_buffers.insert(static_cast<std::size_t>(value.buffer));
  }
  if ((detail == Detail::paper && !table.keeps_views()) || kept_buffers == 0) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value& value = table[values[i].value];
    if (values[i].received) continue;
    if (value.buffer == nowhere || !kept_buffers.contains(static_cast<std::size_t>(value.buffer))) continue;
    if (fate_of(values[i].use, recomputed).needed) continue;
    visit(StoredValue{.index = i, .placement = value.placement, .pinned = true});
  }
}

constexpr bool saves_random_state(const RecomputedOps& recomputed, Detail detail) {
  return detail == Detail::exact && recomputed.ops != 0;
}

namespace detail {

constexpr std::string_view why_saved(const Op& op, ValueId value) {
  for (const Save& save : op.saves) {
    if (save.value == value) return save.why;
  }
  EXPECTS(!"the op saves the value");
  return {};
}

constexpr StoredTensor stored_tensor(const OpTable& table, const Storable& of, const StoredValue& stored,
                                     const Sharding& sharding, const RecomputedOps& recomputed) {
  const Value& value = table[of.value];
  StoredTensor tensor{
      .op = value.producer,
      .value = of.value,
      .name = value.name,
      .why = "shares an allocation with a kept view",
      .dtype = value.dtype,
      .bytes = bytes_on_rank(value, stored.placement, sharding) * Rational(1, stored.half ? 2 : 1),
      .kept = stored.kept,
      .received = of.received};
  if (stored.pinned) return tensor;
  const bool saved = of.use.savers != 0;
  if (!saved && (of.use.readers & recomputed.ops) == 0) {
    tensor.why = "a cache keeps it";
    return tensor;
  }
  tensor.op = (saved ? of.use.savers : of.use.readers & recomputed.ops).lowest();
  tensor.why = saved ? why_saved(table.ops()[static_cast<std::size_t>(tensor.op)], of.value)
                     : "the recomputation starts from it";
  return tensor;
}

}  // namespace detail

// Returns every tensor that the backward pass of `table` needs, kept or recomputed.
HEADROOM_VECTOR_CONSTEXPR StoredTensors stored_tensors(const OpTable& table, const Sharding& sharding,
                                                       const RecomputedOps& recomputed = {},
                                                       Detail detail = Detail::paper) {
  StoredTensors result;
  const Storables values = storables(table, sharding, detail);
  visit_stored(table, values, sharding, recomputed, detail, [&](const StoredValue& stored) {
    result.push_back(detail::stored_tensor(table, values[stored.index], stored, sharding, recomputed));
  });
  if (saves_random_state(recomputed, detail)) {
    result.push_back({.op = recomputed.ops.lowest(),
                      .name = "random state",
                      .why = "makes the same dropout masks again",
                      .dtype = Dtype::boolean,
                      .bytes = checkpoint_random_state_bytes});
  }
  return result;
}

// Returns the bytes that stay from the forward to the backward pass.
constexpr Expr kept_bytes(const StoredTensors& tensors) {
  Expr sum;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.kept) sum += tensor.bytes;
  }
  return sum;
}

// Returns the bytes that a recomputation makes. This working set stays until the end of its backward pass.
constexpr Expr dropped_bytes(const StoredTensors& tensors) {
  Expr sum;
  for (const StoredTensor& tensor : tensors) {
    if (!tensor.kept) sum += tensor.bytes;
  }
  return sum;
}

// Returns the forward FLOPs of the GEMMs of `ops` on one rank [K22 appendix A: GEMMs only].
constexpr Expr forward_flops(const OpTable& table, const Sharding& sharding, OpSet ops) {
  Expr sum;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if ((ops & op_bit(i)) == 0) continue;
    for (const MatrixProduct& product : table.ops()[i].products) {
      sum += flops_on_rank(product, sharding);
    }
  }
  return sum;
}

// Returns the forward FLOPs that a recomputation skips because a cache keeps the outputs.
constexpr Expr cached_flops(const OpTable& table, const Sharding& sharding, const RecomputedOps& recomputed) {
  Expr sum;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const Op& op = table.ops()[i];
    if ((recomputed.ops & op_bit(i)) == 0 || op.kind != OpKind::linear) continue;
    for (const ValueId output : op.outputs) {
      const auto id = static_cast<std::size_t>(output);
      const bool half = recomputed.half_cached.contains(id);
      if (!half && !recomputed.cached.contains(id)) continue;
      const Value& value = table[output];
      const Amount made{2 * value.elements * Rational(1, half ? 2 : 1), value.placement};
      sum += of_own_tokens(on_rank(made, sharding), sharding) * on_rank(op.products[0].inner, sharding);
    }
  }
  return sum;
}

}  // namespace headroom

// Ops of a table that the backward pass recomputes, and values that the forward pass can therefore drop.
#pragma once

#include <initializer_list>
#include <string_view>

#include "headroom/core/bit_set.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom {

// Sets of ops and of values of one table.
using OpSet = BitSet<OpTable::max_ops>;
using ValueSet = BitSet<OpTable::max_values>;

constexpr OpSet op_bit(std::size_t op) {
  OpSet set;
  set.insert(op);
  return set;
}

constexpr OpSet every_op(const OpTable& table) { return OpSet::first(table.ops().size()); }

// Returns the ops of a table with one of these names.
constexpr OpSet ops_named(const OpTable& table, std::initializer_list<std::string_view> names) {
  OpSet set;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    for (const std::string_view name : names) {
      if (table.ops()[i].name == name) set |= op_bit(i);
    }
  }
  return set;
}

constexpr OpSet core_attention_ops(const OpTable& table) {
  OpSet set = 0;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (table.ops()[i].core_attention) set |= op_bit(i);
  }
  return set;
}

// Ops that the backward pass recomputes, and values that the forward pass can therefore drop.
//
// Ops form a region: a checkpoint, as in K22 or Megatron's core_attn. Values that only the region itself
// needs are dropped; values that it makes for ops outside stay. Outputs of `discarded` ops are dropped
// whoever needs them, as in Megatron's output-discarding checkpoint. Either way, the inputs of the region are
// kept.
//
// PyTorch's selective checkpointing keeps outputs of some ops in a cache, from which the recomputation takes
// them. Ops whose outputs are all cached are not among `ops`. For other ops, some outputs are cached, or half
// of an output that two linears make.
struct RecomputedOps {
  OpSet ops = 0;
  OpSet discarded = 0;             // subset of `ops`
  bool shard_checkpoint = false;   // each rank saves 1/t of a boundary input and gathers it to recompute
  ValueSet cached = 0;             // outputs of `ops` that are kept whole
  ValueSet half_cached = 0;        // outputs of `ops` of which half is kept
  bool caches_reductions = false;  // keeps outputs of reduce-scatters, which are not rerun
  friend bool operator==(const RecomputedOps&, const RecomputedOps&) = default;
};

}  // namespace headroom

// Which ops of a table the backward pass runs again, and what that lets the forward pass drop.
#pragma once

#include <initializer_list>
#include <string_view>

#include "headroom/core/bit_set.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom {

// A set of ops of one table, and one of its values.
using OpSet = BitSet<OpTable::max_ops>;
using ValueSet = BitSet<OpTable::max_values>;

constexpr OpSet op_bit(std::size_t op) {
  OpSet set;
  set.insert(op);
  return set;
}

constexpr OpSet every_op(const OpTable& table) { return OpSet::first(table.ops().size()); }

// Those of a table that have one of these names.
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

// Which ops the backward pass runs again, and what that lets the forward pass drop.
//
// As a region (a checkpoint, as K22 and Megatron's core_attn): what the ops make and only they keep is
// dropped; what they make for ops outside stays. What `discarded` ops make (Megatron's
// output-discarding checkpoint) is dropped, whoever keeps it. Either way what they read from outside must be kept.
//
// Selective checkpointing of PyTorch keeps outputs of some ops in a cache, from which the replay takes them: whole ops, which are
// then not among `ops`, and of others some outputs, or one half of an output that two linears make.
struct RecomputedOps {
  OpSet ops = 0;
  OpSet discarded = 0;             // some of them
  bool shard_checkpoint = false;   // each rank saves 1/t of a boundary input and gathers it to recompute
  ValueSet cached = 0;             // outputs of `ops` that are kept
  ValueSet half_cached = 0;        // of which a half is
  bool caches_reductions = false;  // what reduce-scatters make is kept, and they do not run again
  friend bool operator==(const RecomputedOps&, const RecomputedOps&) = default;
};

}  // namespace headroom

// The collectives around the ops of a table, each with the axis whose group runs it.
//
// Tensor parallelism: collectives follow from placements. One runs before an op on 1/t of a layer that reads
// a boundary value, and one after such an op that outputs a boundary value [K22 section 4.2, figures 4 and
// 5].
//
// Context parallelism: collectives surround an op that needs keys and values of all tokens. Other axes:
// collectives are the exchanges that an op lists.
//
// Sequence parallelism: the backward pass of an op behind g needs its whole input again. This extra
// all-gather overlaps with the input gradient. The backward pass of attention also needs keys and values of
// all tokens again.
//
// Bytes are those of the whole tensor. A ring moves 2 (t-1)/t (all-reduce) or (t-1)/t (all-gather,
// reduce-scatter) of the tensor past every rank. Bytes of an all-to-all and of a send are those that one rank
// holds before it.
//
// Split hidden dimension: a norm sums its statistics over the ranks in fp32. They are mean and variance for a
// layer norm, the mean square for an RMS norm, and as many sums for the gradient of the input.
//
// A tensor that is gathered for a GEMM below 16 bits travels in the dtype of the GEMM: the input in the
// forward pass, the gradient of the output in the backward pass. Sums over ranks stay at 16 bits [Transformer
// Engine, module/linear.py, base.py].
#pragma once

#include <vector>

#include "headroom/core/vector_constexpr.hpp"
#include "headroom/model/exchange.hpp"
#include "headroom/parallel/compose.hpp"

namespace headroom {

struct Collective {
  Conjugate name = Conjugate::f;
  int op = nowhere;         // the op that it runs before, if it enters, or after
  Monomial bytes;           // in the forward pass, and in the second gather
  Monomial backward_bytes;  // differ if one of the passes sends values below 16 bits
  bool recomputed = false;  // the recomputation runs its forward half again
  bool regathers = false;   // the backward pass runs its forward half again
  ParallelAxis axis = ParallelAxis::tensor;
  GroupPart part = GroupPart::whole;
  friend bool operator==(const Collective&, const Collective&) = default;
};

using Collectives = std::vector<Collective>;

// Returns the collectives of a table, in the order of the forward pass.
HEADROOM_VECTOR_CONSTEXPR Collectives collectives(const OpTable& table, const Sharding& sharding,
                                                  const RecomputedOps& recomputed = {}) {
  Collectives result;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const Op& op = table.ops()[i];
    const bool runs_again = (recomputed.ops & op_bit(i)) != 0;
    const auto insert = [&](Conjugate plain, Conjugate sequence, ValueId id) {
      const Value& value = table[id];
      if (!sharding.tensor || op.region != Placement::split || value.placement != Placement::boundary) return;
      const Conjugate name = sharding.sequence ? sequence : plain;
      const auto bytes = [&](CollectiveKind kind) {
        const bool gathers = kind == CollectiveKind::all_gather && multiplies_narrow(op);
        return whole_bytes(value, sharding, gathers ? op.products[0].dtype : value.dtype);
      };
      result.push_back({.name = name,
                        .op = static_cast<int>(i),
                        .bytes = bytes(forward_kind(name)),
                        .backward_bytes = bytes(backward_kind(name)),
                        .recomputed = runs_again,
                        .regathers = name == Conjugate::g && op.kind == OpKind::linear && !op.frozen &&
                                     !sharding.save_gathered_input});
    };
    const auto exchange = [&](bool entering) {
      for (const Exchange& asked : op.exchanges) {
        if (enters(asked.name) != entering || !divided_along(sharding, asked.axis)) continue;
        if (asked.name == Conjugate::scatter && !sharding.sequence) continue;  // no sequence shards
        const Value& value = table[asked.value];
        const Dtype dtype = asked.dtype.value_or(value.dtype);
        const auto sent = [&](Dtype of) {
          return whole_bytes(value, sharding, of) * share(value.placement, sharding);
        };
        result.push_back({.name = asked.name,
                          .op = static_cast<int>(i),
                          .bytes = sent(dtype),
                          .backward_bytes = sent(asked.backward_dtype.value_or(dtype)),
                          .recomputed = runs_again,
                          .axis = asked.axis});
      }
    };
    // A ring or an all-gather brings the whole tensor; an all-to-all brings as much as it sends. Attention
    // below 16 bits sends its inputs and the gradient of its context in its own dtype. A ring also sends the
    // gradients of keys and values in that dtype, and ranks sum them in 32 bits. The context, and the
    // gradients that an all-to-all sends back, travel in the dtype of attention's output [Transformer Engine,
    // context_parallel.py, AttnFuncWithCPAndKVP2P and AttnFuncWithCPAndQKVOA2A].
    const auto relate = [&](Conjugate name, ValueId id, GroupPart part) {
      const Value& value = table[id];
      const bool of_all = name == Conjugate::pass_on || name == Conjugate::g;
      const auto sent = [&](bool narrow) {
        const Dtype dtype = narrow ? op.products[0].dtype : value.dtype;
        const Monomial own = whole_bytes(value, sharding, dtype) * share(value.placement, sharding);
        return of_all ? own * tokens_received(sharding) : own;
      };
      const bool comes_in = enters(name);
      result.push_back({.name = name,
                        .op = static_cast<int>(i),
                        .bytes = sent(comes_in ? attends_narrow(op) : makes_narrow(op)),
                        .backward_bytes = sent(of_all || !comes_in ? attends_narrow(op) : makes_narrow(op)),
                        .recomputed = runs_again,
                        .regathers = of_all,
                        .axis = ParallelAxis::context,
                        .part = part});
    };
    if (sharding.hidden && op.statistics > 0 && op.region == Placement::boundary) {
      const Monomial bytes =
          of_own_tokens(op.statistics * symbols::s * symbols::b * bytes_with_scales(Dtype::fp32), sharding);
      result.push_back({.name = Conjugate::sums,
                        .op = static_cast<int>(i),
                        .bytes = bytes,
                        .backward_bytes = bytes,
                        .recomputed = runs_again});
    }
    const bool relates = !op.of_all_tokens.empty() && divided_along(sharding, ParallelAxis::context);
    const bool trades_heads = relates && changes_heads(sharding);
    const GroupPart among = sharding.cp_comm == CpComm::a2a ? GroupPart::whole : GroupPart::inner;
    for (const ValueId input : op.inputs) {
      if (!op.reads_gathered) insert(Conjugate::f, Conjugate::g, input);
    }
    exchange(true);
    for (const ValueId input : op.inputs) {
      if (trades_heads) relate(Conjugate::dispatch, input, among);
    }
    for (const ValueId input : op.of_all_tokens) {
      if (!relates || sharding.cp_comm == CpComm::a2a) continue;
      const bool gathers = sharding.cp_comm == CpComm::all_gather;
      relate(gathers ? Conjugate::g : Conjugate::pass_on, input,
             trades_heads ? GroupPart::outer : GroupPart::whole);
    }
    for (const ValueId output : op.outputs) {
      if (!is_narrow(table[output].dtype)) insert(Conjugate::f_bar, Conjugate::g_bar, output);
    }
    if (trades_heads) relate(Conjugate::combine, op.outputs[0], among);
    exchange(false);
  }
  return result;
}

// Returns how often a tensor goes around the ring, all but one shard of it. A ring all-reduce is a
// reduce-scatter followed by an all-gather.
constexpr int ring_passes(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::none: return 0;
    case CollectiveKind::all_reduce: return 2;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_receive:
    case CollectiveKind::ring:
    case CollectiveKind::pipeline_send: return 1;
  }
  EXPECTS(!"unknown collective");
  return 0;
}

// Returns the number of ranks in the group of a collective, as a symbol.
constexpr Monomial ranks_of(const Collective& collective) {
  using namespace symbols;
  switch (collective.axis) {
    case ParallelAxis::tensor: return t;
    case ParallelAxis::context: break;
    case ParallelAxis::expert_tensor: return z;
    case ParallelAxis::expert: return y;
    case ParallelAxis::data: return d;
    case ParallelAxis::pipeline: return p;
  }
  if (collective.part == GroupPart::whole) return c;
  return collective.part == GroupPart::inner ? U : c / U;
}

// Returns the bytes that pass each rank of a group. A send moves all its bytes; the other collectives leave
// each rank its own shard.
constexpr Expr wire_bytes(CollectiveKind kind, const Monomial& bytes, const Monomial& ranks = symbols::t) {
  if (kind == CollectiveKind::send_receive || kind == CollectiveKind::pipeline_send) return bytes;
  return Expr(ring_passes(kind)) * bytes * (1 - 1 / ranks);
}

}  // namespace headroom

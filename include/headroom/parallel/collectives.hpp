// The collectives around the ops of a table, each with the axis whose group runs it. Those of tensor parallelism are
// found from placements: where a boundary value enters an op that runs on 1/t, and where such an op leaves a boundary
// value [K22 section 4.2, figures 4 and 5]. Those of context parallelism stand around a row that needs keys and values of
// all tokens. Those of other axes are the exchanges that a row asks for.
//
// With sequence parallelism the backward of an op behind g needs its input whole again: one more all-gather, which
// overlaps with the input gradient; likewise the backward pass of attention needs keys and values of all tokens again. Bytes are those of the whole tensor, on which a ring moves
// 2 (t-1)/t (all-reduce) or (t-1)/t (all-gather, reduce-scatter) of it past every rank. Those of an all-to-all and of a
// send are what one rank holds before it.
//
// What is gathered for a product of fewer than 16 bits travels in its type: the input in the forward pass, the gradient of
// the output in the backward pass. Where ranks divide the hidden dimension, a norm adds up its statistics over them, in fp32: of a layer norm mean
// and variance, of an RMS norm the mean square, and as many sums for the gradient of its input. Sums over ranks stay at 16 bits [Transformer Engine, module/linear.py, base.py].
#pragma once

#include <vector>

#include "headroom/model/exchange.hpp"
#include "headroom/parallel/compose.hpp"

namespace headroom {

struct Collective {
  Conjugate name = Conjugate::f;
  int op = nowhere;         // before it, or after it where it does not enter
  Monomial bytes;           // in the forward pass, and where it gathers a second time
  Monomial backward_bytes;  // fewer or more where a pass sends values of fewer than 16 bits
  bool recomputed = false;  // runs its forward half once more in the backward pass
  bool regathers = false;   // its forward half runs a second time for the backward pass
  ParallelAxis axis = ParallelAxis::tensor;
  GroupPart part = GroupPart::whole;
  friend bool operator==(const Collective&, const Collective&) = default;
};

using Collectives = std::vector<Collective>;

// In the order of the forward pass.
constexpr Collectives collectives(const OpTable& table, const Sharding& sharding,
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
        if (asked.name == Conjugate::scatter && !sharding.sequence) continue;  // no shards to go on with
        const Value& value = table[asked.value];
        const Monomial bytes = whole_bytes(value, sharding, asked.dtype.value_or(value.dtype)) *
                               share(value.placement, sharding);
        result.push_back({.name = asked.name,
                          .op = static_cast<int>(i),
                          .bytes = bytes,
                          .backward_bytes = bytes,
                          .recomputed = runs_again,
                          .axis = asked.axis});
      }
    };
    // A ring and a gather bring the whole of what is passed round, an all-to-all as much as it takes. Attention in fewer than
    // 16 bits sends what it reads in its type, and the gradient of its context; a ring also the gradients of keys and values, which
    // ranks then sum up at 32 bits. What it makes, and the gradients that an all-to-all takes back, are in the type that it makes
    // [Transformer Engine, context_parallel.py, AttnFuncWithCPAndKVP2P and AttnFuncWithCPAndQKVOA2A].
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

// How often a tensor goes round the ring, all but one shard of it: a ring all-reduce is a reduce-scatter followed by an
// all-gather.
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

// The ranks of its group, a symbol.
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

// Bytes that pass each rank of a group. A send moves all that it is given; the others leave a rank its own shard.
constexpr Expr wire_bytes(CollectiveKind kind, const Monomial& bytes, const Monomial& ranks = symbols::t) {
  if (kind == CollectiveKind::send_receive || kind == CollectiveKind::pipeline_send) return bytes;
  return Expr(ring_passes(kind)) * bytes * (1 - 1 / ranks);
}

}  // namespace headroom

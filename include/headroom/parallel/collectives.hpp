// The collectives that tensor parallelism inserts, found from placements: where a boundary value enters an op that
// runs on 1/t, and where such an op leaves a boundary value [K22 section 4.2, figures 4 and 5].
//
//   f    forward nothing,        backward all-reduce        f_bar  forward all-reduce,     backward nothing
//   g    forward all-gather,     backward reduce-scatter    g_bar  forward reduce-scatter, backward all-gather
//
// With sequence parallelism the backward of an op behind g needs its input whole again: one more all-gather, which
// overlaps with the input gradient. Bytes are those of the whole tensor, on which a ring moves
// 2 (t-1)/t (all-reduce) or (t-1)/t (all-gather, reduce-scatter) of it past every rank.
#pragma once

#include "headroom/parallel/compose.hpp"

namespace headroom {

enum class CollectiveKind : std::uint8_t { none, all_reduce, all_gather, reduce_scatter };

enum class Conjugate : std::uint8_t { f, f_bar, g, g_bar };

struct Collective {
  Conjugate name = Conjugate::f;
  int op = nowhere;        // f and g stand before it, f_bar and g_bar after it
  Monomial bytes;          // of the whole tensor
  bool replayed = false;   // runs its forward half once more in the backward pass
  bool regathers = false;  // gathers its input a second time for the weight gradient
  friend bool operator==(const Collective&, const Collective&) = default;
};

constexpr bool enters(Conjugate name) { return name == Conjugate::f || name == Conjugate::g; }

constexpr CollectiveKind forward_kind(Conjugate name) {
  switch (name) {
    case Conjugate::f: return CollectiveKind::none;
    case Conjugate::f_bar: return CollectiveKind::all_reduce;
    case Conjugate::g: return CollectiveKind::all_gather;
    case Conjugate::g_bar: return CollectiveKind::reduce_scatter;
  }
  EXPECTS(!"unknown collective");
  return CollectiveKind::none;
}

constexpr CollectiveKind backward_kind(Conjugate name) {
  switch (name) {
    case Conjugate::f: return CollectiveKind::all_reduce;
    case Conjugate::f_bar: return CollectiveKind::none;
    case Conjugate::g: return CollectiveKind::reduce_scatter;
    case Conjugate::g_bar: return CollectiveKind::all_gather;
  }
  EXPECTS(!"unknown collective");
  return CollectiveKind::none;
}

using Collectives = FixedVector<Collective, 16>;

// In the order of the forward pass.
constexpr Collectives collectives(const OpTable& table, const Sharding& sharding, const Replay& replay = {}) {
  Collectives result;
  if (!sharding.tensor) return result;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const Op& op = table.ops()[i];
    if (op.region != Placement::split) continue;
    const auto insert = [&](Conjugate plain, Conjugate sequence, ValueId id) {
      const Value& value = table[id];
      if (value.placement != Placement::boundary) return;
      const Conjugate name = sharding.sequence ? sequence : plain;
      result.push_back({.name = name,
                        .op = static_cast<int>(i),
                        .bytes = value.elements * size_of(value.dtype),
                        .replayed = (replay.ops & op_bit(i)) != 0,
                        .regathers = name == Conjugate::g && sharding.regather});
    };
    for (const ValueId input : op.inputs) insert(Conjugate::f, Conjugate::g, input);
    for (const ValueId output : op.outputs) insert(Conjugate::f_bar, Conjugate::g_bar, output);
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
    case CollectiveKind::reduce_scatter: return 1;
  }
  EXPECTS(!"unknown collective");
  return 0;
}

// Bytes that pass each rank in a ring.
constexpr Expr wire_bytes(CollectiveKind kind, const Monomial& bytes) {
  using namespace symbols;
  return Expr(ring_passes(kind)) * bytes * (1 - 1 / t);
}

template <>
inline constexpr std::array<Spelling<CollectiveKind>, 4> spellings<CollectiveKind>{{
    {CollectiveKind::none, "none"},
    {CollectiveKind::all_reduce, "all_reduce"},
    {CollectiveKind::all_gather, "all_gather"},
    {CollectiveKind::reduce_scatter, "reduce_scatter"},
}};
template <>
inline constexpr std::array<Spelling<Conjugate>, 4> spellings<Conjugate>{{
    {Conjugate::f, "f"},
    {Conjugate::f_bar, "f_bar"},
    {Conjugate::g, "g"},
    {Conjugate::g_bar, "g_bar"},
}};

}  // namespace headroom

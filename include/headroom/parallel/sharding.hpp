// How a layer is divided over ranks, and what that leaves one rank of a value, of FLOPs and of weights: rules on placements,
// by axis. The sizes of the axes stay symbols.
#pragma once

#include "headroom/core/axis.hpp"
#include "headroom/core/fixed_vector.hpp"
#include "headroom/expr/expr.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom {

// An axis beside the tensor-parallel one that a layer is divided along, and its number of ranks, a symbol.
struct AxisShare {
  ParallelAxis axis = ParallelAxis::context;
  Monomial ranks = symbols::c;
  friend bool operator==(const AxisShare&, const AxisShare&) = default;
};

// How a layer is divided over the ranks that hold it together. The sizes themselves stay symbols.
struct Sharding {
  bool tensor = false;               // t > 1
  bool sequence = false;             // boundary values are shards, of the sequence [K22 section 4.2.2]
  bool hidden = false;               // or of the hidden dimension
  bool kv_replicated = false;        // k < t: ranks share key/value heads, each holding one
  bool save_gathered_input = false;  // a linear's input is saved whole, not gathered again for the backward
  FixedVector<AxisShare, 3> beside{};
  CpComm cp_comm = CpComm::p2p;  // of the ranks of the context axis
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

constexpr bool divided_along(const Sharding& sharding, ParallelAxis axis) {
  if (axis == ParallelAxis::tensor) return sharding.tensor;
  for (const AxisShare& along : sharding.beside) {
    if (along.axis == axis) return true;
  }
  return false;
}

// What the axes of a kind leave one rank.
constexpr Monomial share_along(Divides divides, const Sharding& sharding) {
  Monomial part = 1;
  for (const AxisShare& along : sharding.beside) {
    if (row_of(along.axis).divides == divides) part = part / along.ranks;
  }
  return part;
}

// What a placement leaves one rank of a value, of FLOPs or of parameters.
constexpr Monomial share(Placement placement, const Sharding& sharding) {
  using namespace symbols;
  const Monomial part = sharding.tensor ? 1 / t : Monomial(1);
  switch (placement) {
    case Placement::whole: return 1;
    case Placement::boundary: return sharding.sequence ? part : 1;
    case Placement::split: return part;
    case Placement::kv_split: return sharding.tensor && sharding.kv_replicated ? 1 / k : part;
    case Placement::experts: return share_along(Divides::experts, sharding);
    case Placement::expert_split: return share_along(Divides::expert_weights, sharding);
    case Placement::routed: return part / share_along(Divides::expert_weights, sharding);
    case Placement::expert_rows:
      return part / share_along(Divides::expert_weights, sharding) / share_along(Divides::experts, sharding);
  }
  EXPECTS(!"unknown placement");
  return 1;
}

constexpr Monomial on_rank(const Amount& amount, const Sharding& sharding) {
  return amount.count * share(amount.placement, sharding);
}

// The tokens of a rank, in a count that has them as a factor; other counts (weights, their copies, single numbers) are
// as they were. Of rows of scores, one for every pair of tokens, a rank has those of its own tokens.
constexpr Monomial of_own_tokens(const Monomial& count, const Sharding& sharding) {
  if (sharding.beside.empty() || count.power(Symbol::sequence) <= 0) return count;
  return count * share_along(Divides::tokens, sharding);
}

// Whether context-parallel ranks change tokens for heads around an op that needs all tokens.
constexpr bool changes_heads(const Sharding& sharding) {
  return sharding.cp_comm == CpComm::a2a || sharding.cp_comm == CpComm::a2a_p2p;
}

// Whether an op, on a part of the tokens of each sequence, keeps a copy of its own of a value that it reads or makes: what came
// last round a ring, or was changed for other tokens of fewer heads. A gather does without: it runs again.
constexpr bool keeps_received(const Op& op, int value, const Sharding& sharding) {
  if (op.of_all_tokens.empty() || !divided_along(sharding, ParallelAxis::context)) return false;
  if (sharding.cp_comm == CpComm::all_gather) return false;
  if (sharding.cp_comm == CpComm::p2p) return op.of_all_tokens.contains(value);
  return op.inputs.contains(value) || op.outputs[0] == value;
}

// What a rank gets of a value that an op needs of all tokens, by what it has of it.
constexpr Monomial tokens_received(const Sharding& sharding) {
  using namespace symbols;
  if (!divided_along(sharding, ParallelAxis::context)) return 1;
  switch (sharding.cp_comm) {
    case CpComm::p2p:
    case CpComm::all_gather: return c;
    case CpComm::a2a: return 1;  // of fewer heads
    case CpComm::a2a_p2p: return c / U;
  }
  EXPECTS(!"unknown exchange");
  return 1;
}

// The weights of a linear's product that one rank holds.
constexpr Expr weights_on_rank(const MatrixProduct& product, const Sharding& sharding) {
  Expr sum;
  for (const Amount& outer : product.outer) {
    sum += on_rank(product.batch, sharding) * on_rank(product.inner, sharding) * on_rank(outer, sharding);
  }
  return sum;
}

// A multiplication and an addition for each row, inner and outer element.
constexpr Expr flops_on_rank(const MatrixProduct& product, const Sharding& sharding) {
  return 2 * of_own_tokens(on_rank(product.rows, sharding), sharding) * weights_on_rank(product, sharding);
}

// Bytes of one element, with its part of the scale that a block of them shares.
constexpr Rational bytes_with_scales(Dtype dtype) {
  const BlockScales& scales = row_of(dtype).scales;
  const std::int64_t block = scales.block;
  return Rational(bits_of(dtype) * block + scales.bits, 8 * block);
}

// Bytes of a value before tensor parallelism divides it: of all tokens of a rank. By default of its dtype.
constexpr Monomial whole_bytes(const Value& value, const Sharding& sharding, Dtype dtype) {
  return of_own_tokens(value.elements * bytes_with_scales(dtype), sharding);
}
constexpr Monomial whole_bytes(const Value& value, const Sharding& sharding) {
  return whole_bytes(value, sharding, value.dtype);
}

// Where the hidden dimension is divided, one number for each token is whole on every rank.
constexpr Monomial bytes_on_rank(const Value& value, Placement placement, const Sharding& sharding) {
  const bool by_token =
      sharding.hidden && placement == Placement::boundary && value.elements.power(Symbol::hidden) <= 0;
  return whole_bytes(value, sharding) * share(by_token ? Placement::whole : placement, sharding);
}

}  // namespace headroom

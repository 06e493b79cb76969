// Sharding of a layer, and the part of a value, of FLOPs and of weights that one rank gets: rules on
// placements, by axis. Sizes of axes stay symbols.
#pragma once

#include "headroom/core/axis.hpp"
#include "headroom/core/fixed_vector.hpp"
#include "headroom/expr/expr.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom {

// An axis other than the tensor-parallel one that splits a layer, and its number of ranks (a symbol).
struct AxisShare {
  ParallelAxis axis = ParallelAxis::context;
  Monomial ranks = symbols::c;
  friend bool operator==(const AxisShare&, const AxisShare&) = default;
};

// Sharding of a layer over the ranks that hold it together. Sizes of axes stay symbols.
struct Sharding {
  bool tensor = false;               // t > 1
  bool sequence = false;             // boundary values are split along the sequence [K22 section 4.2.2]
  bool hidden = false;               // or along the hidden dimension
  bool kv_replicated = false;        // k < t: ranks share key/value heads, each holding one
  bool save_gathered_input = false;  // a linear's input is saved whole, not gathered again for the backward
  FixedVector<AxisShare, 3> beside{};
  CpComm cp_comm = CpComm::p2p;  // communication of context-parallel ranks
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

constexpr bool divided_along(const Sharding& sharding, ParallelAxis axis) {
  if (axis == ParallelAxis::tensor) return sharding.tensor;
  for (const AxisShare& along : sharding.beside) {
    if (along.axis == axis) return true;
  }
  return false;
}

// Returns the share of one rank after splitting along all axes of the kind `divides`.
constexpr Monomial share_along(Divides divides, const Sharding& sharding) {
  Monomial part = 1;
  for (const AxisShare& along : sharding.beside) {
    if (row_of(along.axis).divides == divides) part = part / along.ranks;
  }
  return part;
}

// Returns the share of a value, of FLOPs or of parameters that a placement gives one rank.
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

// Returns a count restricted to the tokens of a rank, if it has tokens as a factor. Other counts (weights,
// their copies, single numbers) stay as they are. Scores, which exist for every pair of tokens, are
// restricted to the queries of the rank.
constexpr Monomial of_own_tokens(const Monomial& count, const Sharding& sharding) {
  if (sharding.beside.empty() || count.power(Symbol::sequence) <= 0) return count;
  return count * share_along(Divides::tokens, sharding);
}

// Returns whether context-parallel ranks exchange tokens for heads around an op that needs all tokens.
constexpr bool changes_heads(const Sharding& sharding) {
  return sharding.cp_comm == CpComm::a2a || sharding.cp_comm == CpComm::a2a_p2p;
}

// Returns whether an op on a part of the tokens of each sequence keeps a received copy of a value that it
// reads or makes. A ring leaves what came last; an all-to-all leaves other tokens of fewer heads. An
// all-gather leaves nothing, since it runs again.
constexpr bool keeps_received(const Op& op, int value, const Sharding& sharding) {
  if (op.of_all_tokens.empty() || !divided_along(sharding, ParallelAxis::context)) return false;
  if (sharding.cp_comm == CpComm::all_gather) return false;
  if (sharding.cp_comm == CpComm::p2p) return op.of_all_tokens.contains(value);
  return op.inputs.contains(value) || op.outputs[0] == value;
}

// Returns the ratio of what a rank receives to what it holds of a value that an op needs for all tokens.
constexpr Monomial tokens_received(const Sharding& sharding) {
  using namespace symbols;
  if (!divided_along(sharding, ParallelAxis::context)) return 1;
  switch (sharding.cp_comm) {
    case CpComm::p2p:
    case CpComm::all_gather: return c;
    case CpComm::a2a: return 1;  // all tokens of fewer heads
    case CpComm::a2a_p2p: return c / U;
  }
  EXPECTS(!"unknown exchange");
  return 1;
}

// Returns the weights of a linear's GEMM that one rank holds.
constexpr Expr weights_on_rank(const MatrixProduct& product, const Sharding& sharding) {
  Expr sum;
  for (const Amount& outer : product.outer) {
    sum += on_rank(product.batch, sharding) * on_rank(product.inner, sharding) * on_rank(outer, sharding);
  }
  return sum;
}

// Returns the FLOPs of a GEMM on one rank: one multiplication and one addition for each row, inner and outer
// element.
constexpr Expr flops_on_rank(const MatrixProduct& product, const Sharding& sharding) {
  const Monomial rows = of_own_tokens(on_rank(product.rows, sharding), sharding);
  const Monomial own = product.sums_tokens ? share_along(Divides::tokens, sharding) : Monomial(1);
  return 2 * rows * own * weights_on_rank(product, sharding);
}

// Returns the bytes of one element, including its part of the scale of its block.
constexpr Rational bytes_with_scales(Dtype dtype) {
  const BlockScales& scales = row_of(dtype).scales;
  const std::int64_t block = scales.block;
  return Rational(bits_of(dtype) * block + scales.bits, 8 * block);
}

// Returns the bytes of a value for all tokens of a rank, before tensor parallelism splits it. The default
// dtype is that of the value.
constexpr Monomial whole_bytes(const Value& value, const Sharding& sharding, Dtype dtype) {
  return of_own_tokens(value.elements * bytes_with_scales(dtype), sharding);
}
constexpr Monomial whole_bytes(const Value& value, const Sharding& sharding) {
  return whole_bytes(value, sharding, value.dtype);
}

// Returns the bytes of a value on one rank. If the hidden dimension is split, a value with one number per
// token is whole on every rank.
constexpr Monomial bytes_on_rank(const Value& value, Placement placement, const Sharding& sharding) {
  const bool by_token =
      sharding.hidden && placement == Placement::boundary && value.elements.power(Symbol::hidden) <= 0;
  return whole_bytes(value, sharding) * share(by_token ? Placement::whole : placement, sharding);
}

}  // namespace headroom

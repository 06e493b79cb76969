// Kernels that cast 16-bit tensors to fewer bits ahead of an op's GEMMs, derived from the op's row and the
// precision:
//
//   forward    casts the input of a linear, in the op that makes it
//   backward   casts the gradient of a linear's output, or of attention's
//   both       cast an input that is saved in 16 bits, each time it is needed
//
// Weights are cast once an iteration (time/optimizer_step.hpp). Rates of attention in fewer than 16 bits
// include the casts of queries, keys and values.
#pragma once

#include <vector>

#include "headroom/core/vector_constexpr.hpp"
#include "headroom/model/precision.hpp"
#include "headroom/model/precision_ops.hpp"
#include "headroom/parallel/compose.hpp"

namespace headroom {

struct Cast {
  Expr elements;  // on one rank
  Dtype dtype = Dtype::fp8;
  bool both_directions = false;  // copies to multiply by rows and by columns
  bool scale_known = false;
  bool experts = false;  // tokens of each expert are cast separately
};
using Casts = std::vector<Cast>;

namespace detail {

constexpr Expr elements_on_rank(const Value& value, const Sharding& sharding) {
  return of_own_tokens(value.elements, sharding) * share(value.placement, sharding);
}

// Returns whether an op reads the value in 16 bits or more.
constexpr bool read_at_half(const OpTable& table, ValueId value) {
  for (const Op& op : table.ops()) {
    if (op.inputs.contains(value) && !multiplies_narrow(op)) return true;
  }
  return false;
}

// Returns whether `copy` is what expert GEMMs save in place of their input.
constexpr bool kept_by_experts(const OpTable& table, ValueId copy) {
  for (const Op& op : table.ops()) {
    if (op.weights != WeightClass::expert || op.products.empty()) continue;
    for (const Save& save : op.saves) {
      if (save.value == copy) return true;
    }
  }
  return false;
}

constexpr Cast of_kept_input(const OpTable& table, const Op& op, const Sharding& sharding, bool scale_known) {
  return {.elements = elements_on_rank(table[op.inputs[0]], sharding),
          .dtype = op.products[0].dtype,
          .scale_known = scale_known,
          .experts = op.weights == WeightClass::expert};
}

}  // namespace detail

HEADROOM_VECTOR_CONSTEXPR Casts forward_casts(const OpTable& table, const Op& op, const Sharding& sharding,
                                              Precision precision) {
  Casts casts;
  if (attends_narrow(op)) return casts;
  const PrecisionRow& row = row_of(precision);
  // A normalization whose output is also read in 16 bits is a module of its own.
  const bool in_norm = op.kind == OpKind::normalization && !detail::read_at_half(table, op.outputs[0]);
  if (keeps_original(op)) casts.push_back(detail::of_kept_input(table, op, sharding, row.scale_known));
  if (in_norm && row.in_norm == NormCast::whole) return casts;  // the norm writes only the copies
  for (const ValueId output : op.outputs) {
    if (!is_narrow(table[output].dtype)) continue;
    casts.push_back({.elements = detail::elements_on_rank(table[output], sharding),
                     .dtype = table[output].dtype,
                     .both_directions = true,
                     .scale_known = row.scale_known || (in_norm && row.in_norm == NormCast::largest_element),
                     .experts = detail::kept_by_experts(table, output)});
  }
  return casts;
}

HEADROOM_VECTOR_CONSTEXPR Casts backward_casts(const OpTable& table, const Op& op, const Sharding& sharding,
                                               Precision precision) {
  Casts casts;
  const bool scale_known = row_of(precision).scale_known;
  if (attends_narrow(op)) {
    casts.push_back({.elements = detail::elements_on_rank(table[op.outputs[0]], sharding),
                     .dtype = op.products[0].dtype,
                     .both_directions = true,
                     .scale_known = scale_known});
  }
  if (!multiplies_narrow(op)) return casts;
  Expr gradients;
  for (const ValueId output : op.outputs) {
    if (!is_narrow(table[output].dtype)) gradients += detail::elements_on_rank(table[output], sharding);
  }
  casts.push_back({.elements = gradients,
                   .dtype = op.products[0].dtype,
                   .both_directions = true,
                   .scale_known = scale_known,
                   .experts = op.weights == WeightClass::expert});
  if (keeps_original(op)) casts.push_back(detail::of_kept_input(table, op, sharding, scale_known));
  return casts;
}

}  // namespace headroom

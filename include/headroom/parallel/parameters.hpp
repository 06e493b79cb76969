// The parameters that one tensor-parallel rank holds of an op table, by class of weights and by how they are kept.
#pragma once

#include "headroom/expr/expr.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

// Weights that one rank holds of the products of an op.
constexpr Expr product_weights(const Op& op, const Sharding& sharding) {
  Expr sum;
  for (const MatrixProduct& product : op.products) sum += weights_on_rank(product, sharding);
  return sum;
}

// Weights and biases that one rank holds of an op.
constexpr Expr parameters(const Op& op, const Sharding& sharding) {
  Expr sum;
  for (const Amount& part : op.parameters) sum += on_rank(part, sharding);
  return op.kind != OpKind::linear || op.shares_weights ? sum : sum + product_weights(op, sharding);
}

// What ops of a table hold, each as `of` says.
template <class Of>
constexpr Expr sum_over(const OpTable& table, const Of& of) {
  Expr sum;
  for (const Op& op : table.ops()) sum += of(op);
  return sum;
}

// Parameters of a class that one rank holds.
constexpr Expr parameters(const OpTable& table, const Sharding& sharding, WeightClass weights) {
  return sum_over(table,
                  [&](const Op& op) { return op.weights == weights ? parameters(op, sharding) : Expr(); });
}

// Those of them that are factors of products of fewer than 16 bits.
constexpr Expr narrow_weights(const OpTable& table, const Sharding& sharding, WeightClass weights) {
  return sum_over(table, [&](const Op& op) {
    const bool narrow = op.weights == weights && multiplies_narrow(op) && !op.weights_at_half;
    return narrow ? product_weights(op, sharding) : Expr();
  });
}

// And those that are so beside 16 bits that stay: of an output layer.
constexpr Expr narrow_output_weights(const OpTable& table, const Sharding& sharding) {
  return sum_over(table, [&](const Op& op) {
    return op.weights_at_half && !op.shares_weights ? product_weights(op, sharding) : Expr();
  });
}

// All of them.
constexpr Expr parameters(const OpTable& table, const Sharding& sharding) {
  return parameters(table, sharding, WeightClass::dense) + parameters(table, sharding, WeightClass::expert);
}

}  // namespace headroom

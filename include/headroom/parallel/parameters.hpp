// Counts the parameters of an op table that one TP rank holds, by class of weights and by how they are kept.
#pragma once

#include "headroom/expr/expr.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

// Returns the weights in the GEMMs of an op that one rank holds.
constexpr Expr product_weights(const Op& op, const Sharding& sharding) {
  Expr sum;
  for (const MatrixProduct& product : op.products) sum += weights_on_rank(product, sharding);
  return sum;
}

// Returns the weights and biases of an op that one rank holds.
constexpr Expr parameters(const Op& op, const Sharding& sharding) {
  Expr sum;
  for (const Amount& part : op.parameters) sum += on_rank(part, sharding);
  return op.kind != OpKind::linear || op.shares_weights ? sum : sum + product_weights(op, sharding);
}

// Returns the sum of `of(op)` over the ops of a table.
template <class Of>
constexpr Expr sum_over(const OpTable& table, const Of& of) {
  Expr sum;
  for (const Op& op : table.ops()) sum += of(op);
  return sum;
}

// Returns the parameters of one class of weights that one rank holds.
constexpr Expr parameters(const OpTable& table, const Sharding& sharding, WeightClass weights) {
  return sum_over(table,
                  [&](const Op& op) { return op.weights == weights ? parameters(op, sharding) : Expr(); });
}

// Returns the weights of one class whose GEMMs run below 16 bits, except weights that stay at 16 bits beside
// narrow copies.
constexpr Expr narrow_weights(const OpTable& table, const Sharding& sharding, WeightClass weights) {
  return sum_over(table, [&](const Op& op) {
    const bool narrow = op.weights == weights && multiplies_narrow(op) && !op.weights_at_half;
    return narrow ? product_weights(op, sharding) : Expr();
  });
}

// Returns the weights of output layers whose GEMMs run below 16 bits while 16-bit weights stay beside them.
constexpr Expr narrow_output_weights(const OpTable& table, const Sharding& sharding) {
  return sum_over(table, [&](const Op& op) {
    return op.weights_at_half && !op.shares_weights ? product_weights(op, sharding) : Expr();
  });
}

// Returns the parameters of all classes that one rank holds.
constexpr Expr parameters(const OpTable& table, const Sharding& sharding) {
  return parameters(table, sharding, WeightClass::dense) + parameters(table, sharding, WeightClass::expert);
}

}  // namespace headroom

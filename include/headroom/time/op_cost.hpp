// Cost of one op of a table on one rank, for one microbatch: its GEMMs, its memory-bound kernels and the
// collectives around it, forward and backward.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "headroom/time/costs.hpp"
#include "headroom/time/op_work.hpp"

namespace headroom {

struct OpCost {
  PassCost forward;
  PassCost backward_data;    // work that the preceding op's backward pass waits for
  PassCost backward_weight;  // weight gradients and their accumulation
  Extrapolations beyond;
  Seconds reduction;         // part of forward communication: reduce-scatters after the op
  Seconds reduction_copies;  // part of memory-bound time: copies for reduce-scatters
  std::vector<std::pair<ValueId, double>> made;  // outputs of a linear, as fractions of all its outputs
  double kernels = 1;                            // that the host launches in the forward pass
  bool host_waits = false;                       // before the op
  friend bool operator==(const OpCost&, const OpCost&) = default;
};

OpCost op_cost(const OpWork& work, const Setting& setting);
OpCost op_cost(const OpTable& table, std::size_t op, const Collectives& inserted, const Setting& setting);

}  // namespace headroom

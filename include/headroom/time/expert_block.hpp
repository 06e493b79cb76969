// Time of a rank's experts in the forward pass, from the scores of a router to the weighted sum of what the experts make:
// the smallest unit that tables of measured kernels have.
//
//   rows   = tokens top_k / expert_parallel                      that reach this rank, in equal parts for each of its experts
//   moved  = 2 (2 tokens hidden + rows (2 hidden + 3 width))      bytes: permuted, activated (gate and up read), summed
//   block  = launch + moved / row_bandwidth + product of gate and up + product of down
//
// Values between the products are of 16 bits in memory, also where products are of fewer: turning them into the type of the
// products is part of what these kernels do, so that `row_bandwidth` of such types counts it.
#pragma once

#include <cstdint>

#include "headroom/core/dtype.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/hardware/rates.hpp"

namespace headroom {

struct ExpertBlock {
  std::int64_t tokens = 1;  // that are presented to the rank
  std::int64_t hidden = 1;
  std::int64_t feedforward = 1;  // of an expert, whole
  std::int64_t top_k = 1;
  std::int64_t experts = 1;          // on all ranks
  std::int64_t tensor_parallel = 1;  // ranks that divide the width of an expert
  std::int64_t expert_parallel = 1;  // ranks that the experts lie on
  Dtype dtype = Dtype::half;         // of the products
  friend bool operator==(const ExpertBlock&, const ExpertBlock&) = default;
};

// Of one expert, where every expert is wanted alike.
double rows_of_expert(const ExpertBlock& block);

// Of an expert, on one rank.
constexpr std::int64_t width_of_expert(const ExpertBlock& block) {
  return block.feedforward / block.tensor_parallel;
}

// Of both products.
Flops expert_block_flops(const ExpertBlock& block);

// At the clock of a burst.
Seconds expert_block_time(const ExpertBlock& block, const Device& device, const GroupedProductRates& rates);

// Whether the rates were fitted on experts with so many rows.
inline bool within_fit(const ExpertBlock& block, const GroupedProductRates& rates) {
  return holds(rates.fitted_rows, rows_of_expert(block));
}

}  // namespace headroom

// Forward time of a rank's experts, from the router's scores to the weighted sum of the experts' outputs.
// This is the smallest unit in tables of measured kernels.
//
//   rows   = tokens top_k / expert_parallel                  tokens on this rank, the same for each expert
//   moved  = 2 (2 tokens hidden + rows (2 hidden + 3 width)) bytes to permute, activate (reads gate, up), sum
//   block  = launch + moved / row_bandwidth + gate-and-up GEMM + down GEMM
//
// Values between the GEMMs have 16 bits in memory, even if the GEMMs have fewer. These kernels also cast
// them, so `row_bandwidth` of such dtypes includes the casts.
#pragma once

#include <cstdint>

#include "headroom/core/dtype.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/hardware/rates.hpp"

namespace headroom {

struct ExpertBlock {
  std::int64_t tokens = 1;  // tokens presented to the rank
  std::int64_t hidden = 1;
  std::int64_t feedforward = 1;  // full width of an expert
  std::int64_t top_k = 1;
  std::int64_t experts = 1;          // experts on all ranks
  std::int64_t tensor_parallel = 1;  // ranks that share the width of an expert
  std::int64_t expert_parallel = 1;  // ranks that share the experts
  Dtype dtype = Dtype::half;         // of the GEMMs
  friend bool operator==(const ExpertBlock&, const ExpertBlock&) = default;
};

// Returns tokens of one expert under balanced routing.
double rows_of_expert(const ExpertBlock& block);

// Returns the width of an expert on one rank.
constexpr std::int64_t width_of_expert(const ExpertBlock& block) {
  return block.feedforward / block.tensor_parallel;
}

// Returns the FLOPs of both GEMMs.
Flops expert_block_flops(const ExpertBlock& block);

// Returns the time of a block at the burst clock.
Seconds expert_block_time(const ExpertBlock& block, const Device& device, const GroupedProductRates& rates);

// Returns whether the rates were fitted on experts with this many tokens.
inline bool within_fit(const ExpertBlock& block, const GroupedProductRates& rates) {
  return holds(rates.fitted_rows, rows_of_expert(block));
}

}  // namespace headroom

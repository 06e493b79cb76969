#include "headroom/time/expert_block.hpp"

#include <cmath>

#include "headroom/core/counts.hpp"
#include "headroom/time/gemm.hpp"

namespace headroom {

double rows_of_expert(const ExpertBlock& block) {
  return real(block.tokens) * real(block.top_k) / real(block.experts);
}

Flops expert_block_flops(const ExpertBlock& block) {
  const double rows = real(block.tokens) * real(block.top_k) / real(block.expert_parallel);
  return Flops(6 * rows * real(block.hidden) * real(block.feedforward) / real(block.tensor_parallel));
}

Seconds expert_block_time(const ExpertBlock& block, const Device& device, const GroupedProductRates& rates) {
  const std::int64_t width = width_of_expert(block);
  const std::int64_t experts = block.experts / block.expert_parallel;
  const double rows = real(block.tokens) * real(block.top_k) / real(block.expert_parallel);
  const Bytes moved(
      2 * (2 * real(block.tokens) * real(block.hidden) + rows * (2 * real(block.hidden) + 3 * real(width))));
  Gemm up{.batch = experts,
          .rows = std::llround(std::ceil(rows_of_expert(block))),
          .columns = 2 * width,
          .inner = block.hidden,
          .dtype = block.dtype};
  Gemm down = up;
  down.columns = block.hidden;
  down.inner = width;
  return rates.launch.value + moved / rates.row_bandwidth.value +
         grouped_gemm_time(up, device, rates, /*clock=*/1) +
         grouped_gemm_time(down, device, rates, /*clock=*/1);
}

}  // namespace headroom

#include "headroom/plan/throughput.hpp"

namespace headroom {

Throughput throughput(const IterationFlops& flops, Seconds iteration, const Strategy& strategy,
                      const Workload& workload, const Device& device) {
  const auto ranks = static_cast<double>(devices(strategy));
  const double samples = static_cast<double>(workload.global_batch) / iteration.count();
  const double tokens = samples * static_cast<double>(workload.sequence);
  const FlopsPerSecond peak = peak_of(device, compute_dtype(strategy.precision));
  const auto part_of_peak = [&](Flops done) { return utilization(done, iteration, devices(strategy), peak); };
  return {.tokens_per_second = tokens,
          .tokens_per_second_per_device = tokens / ranks,
          .samples_per_second = samples,
          .flops_per_device = flops.model_causal / iteration / ranks,
          .mfu = part_of_peak(flops.model_causal),
          .hfu = part_of_peak(flops.hardware_causal),
          .mfu_full = part_of_peak(flops.model),
          .hfu_full = part_of_peak(flops.hardware),
          .mfu_half = utilization(flops.model_causal, iteration, devices(strategy), device.half_peak),
          .hfu_paper = part_of_peak(flops.hardware_paper)};
}

}  // namespace headroom

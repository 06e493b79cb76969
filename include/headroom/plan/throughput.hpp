// Throughput and utilization that follow from an iteration time. MFU counts the FLOPs that the model needs. HFU
// adds recomputed FLOPs. Neither counts padding or the masks that route tokens. Both count GEMMs only [K22
// appendix A], against the dense peak of the compute dtype of the strategy's precision.
#pragma once

#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

struct IterationFlops {
  Flops model;            // attention counted in full, the convention of K22 and of Megatron-LM at its time
  Flops model_causal;     // counts only the half of the attention GEMMs that a causal mask leaves
  Flops hardware;         // `model` plus each recomputation once
  Flops hardware_causal;  // `model_causal` plus each recomputation once
  Flops hardware_paper;   // K22 eq. 8: counts recomputed core attention three times; no use for others
  friend bool operator==(const IterationFlops&, const IterationFlops&) = default;
};

struct Throughput {
  double tokens_per_second = 0;
  double tokens_per_second_per_device = 0;
  double samples_per_second = 0;
  // Counts the half of attention that a causal mask leaves, as Megatron-LM does today: no kernel runs less.
  FlopsPerSecond flops_per_device;  // model FLOPs
  double mfu = 0;
  double hfu = 0;
  // Counts attention in full, as K22 and others do: more than what runs if the kernel skips masked blocks.
  double mfu_full = 0;
  double hfu_full = 0;
  // `mfu` against the 16-bit peak, for comparison across precisions.
  double mfu_half = 0;
  double hfu_paper = 0;
  friend bool operator==(const Throughput&, const Throughput&) = default;
};

// Returns the fraction of all GPUs' peak that is used.
inline double utilization(Flops done, Seconds iteration, std::int64_t devices, FlopsPerSecond peak) {
  return done / iteration / static_cast<double>(devices) / peak;
}

Throughput throughput(const IterationFlops& flops, Seconds iteration, const Strategy& strategy,
                      const Workload& workload, const Device& device);

}  // namespace headroom

// What an iteration time means: throughput and utilization. MFU counts the FLOPs that the model needs, HFU those that
// run, recomputation included; both are matrix products only [K22 appendix A], against the dense peak of the model's compute_dtype.
#pragma once

#include "headroom/core/units.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/schedule/replay.hpp"

namespace headroom {

struct IterationFlops {
  Flops model;            // attention counted in full, the convention of K22 and Megatron-LM
  Flops model_causal;     // only the half of the attention products that a causal mask leaves
  Flops hardware;         // model, and replays once
  Flops hardware_causal;  // likewise of hardware
  Flops
      hardware_paper;  // K22 eq. 8, which counts a replay of core attention three times; of no use for others
  friend bool operator==(const IterationFlops&, const IterationFlops&) = default;
};

// The part of all layer passes whose backward pass recomputes.
double replayed_part(const Transformer& model, const Strategy& strategy, const ScheduleShape& shape,
                     const ReplayedSchedule& schedule);

// `replayed` is the part of layer passes that recompute, 1 unless layers or microbatches are exempt.
IterationFlops iteration_flops(const Transformer& model, const Strategy& strategy, const Workload& workload,
                               double replayed);
// The same of the model's layers, where they are known already.
IterationFlops iteration_flops(const Transformer& model, const ModelLayers& layers, const Strategy& strategy,
                               const Workload& workload, double replayed);

struct Throughput {
  double tokens_per_second = 0;
  double tokens_per_second_per_device = 0;
  double samples_per_second = 0;
  FlopsPerSecond flops_per_device;  // model FLOPs
  double mfu = 0;
  double mfu_causal = 0;
  double hfu = 0;
  double hfu_causal = 0;
  double hfu_paper = 0;
  friend bool operator==(const Throughput&, const Throughput&) = default;
};

// Part of the peak of all devices.
inline double utilization(Flops done, Seconds iteration, std::int64_t devices, FlopsPerSecond peak) {
  return done / iteration / static_cast<double>(devices) / peak;
}

Throughput throughput(const IterationFlops& flops, Seconds iteration, const Strategy& strategy,
                      const Workload& workload, FlopsPerSecond peak);

}  // namespace headroom

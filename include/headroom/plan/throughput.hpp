// What an iteration time means: throughput and utilization. MFU counts the FLOPs that the model needs, HFU those that
// run, recomputation included; both are matrix products only [K22 appendix A], against the dense peak of the type that the
// linears of layers multiply (compute_dtype of the strategy's precision).
#pragma once

#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/schedule/replay.hpp"

namespace headroom {

struct IterationFlops {
  Flops model;            // attention counted in full, the convention of K22 and of Megatron-LM at its time
  Flops model_causal;     // only the half of the attention products that a causal mask leaves
  Flops hardware;         // model, and each recomputation once
  Flops hardware_causal;  // likewise of hardware
  Flops
      hardware_paper;  // K22 eq. 8, which counts a recomputation of core attention three times; of no use for others
  friend bool operator==(const IterationFlops&, const IterationFlops&) = default;
};

// Of each kind the part of its layer passes whose backward pass recomputes: 1 unless layers or microbatches are exempt.
using RecomputedParts = FixedVector<double, most_kinds>;
RecomputedParts recomputed_parts(const ModelLayers& layers, const Strategy& strategy,
                                 const ScheduleShape& shape, const ReplayedSchedule& schedule);

IterationFlops iteration_flops(const Transformer& model, const ModelLayers& layers, const Strategy& strategy,
                               const Workload& workload, const RecomputedParts& recomputed);
// What the model needs, and no recomputation.
IterationFlops iteration_flops(const Transformer& model, const ModelLayers& layers, const Workload& workload);

struct Throughput {
  double tokens_per_second = 0;
  double tokens_per_second_per_device = 0;
  double samples_per_second = 0;
  // With the half of attention that a causal mask leaves, as Megatron-LM counts today: no kernel runs less.
  FlopsPerSecond flops_per_device;  // model FLOPs
  double mfu = 0;
  double hfu = 0;
  // With attention in full, as K22 and others count: more than runs where the kernel skips what is masked.
  double mfu_full = 0;
  double hfu_full = 0;
  // The first of them against the peak of 16 bits: to be compared across precisions.
  double mfu_half = 0;
  double hfu_paper = 0;
  friend bool operator==(const Throughput&, const Throughput&) = default;
};

// Part of the peak of all devices.
inline double utilization(Flops done, Seconds iteration, std::int64_t devices, FlopsPerSecond peak) {
  return done / iteration / static_cast<double>(devices) / peak;
}

Throughput throughput(const IterationFlops& flops, Seconds iteration, const Strategy& strategy,
                      const Workload& workload, const Device& device);

}  // namespace headroom

// Time of one iteration: the virtual stages are priced, the schedule is replayed with their times, and what
// follows the pipeline is added. The parts add up to the total.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "headroom/schedule/makespan.hpp"
#include "headroom/time/iteration_end.hpp"
#include "headroom/time/optimizer_step.hpp"
#include "headroom/time/stage_time.hpp"
#include "headroom/time/unit_exchanges.hpp"

namespace headroom {

// Breakdown of an iteration's time, seen from the pipeline rank that is busy longest.
struct Breakdown {
  Seconds gemm;                    // of linear layers, forward and backward
  Seconds attention;               // QK^T and the product with V, or flash attention
  Seconds memory_bound;            // kernels: normalizations, softmax, dropout, activations, ...
  Seconds tensor_communication;    // exposed collectives of tensor parallelism
  Seconds expert_communication;    // exposed, between ranks that share experts
  Seconds context_communication;   // exposed, between ranks that share a sequence
  Seconds scale_communication;     // all-reduce of the amaxes under delayed scaling
  Seconds recompute;               // recomputed GEMMs, kernels and collectives together
  Seconds launch_overhead;         // time added by kernel launches where the GPU waits for them
  Seconds pipeline_communication;  // sending to the next rank
  Seconds bubble;                  // waiting for the other pipeline ranks
  Seconds data_communication;  // weights and gradients over data-parallel ranks and tied embeddings, exposed
  Seconds host_communication;  // what passes send to the host and fetch from it, exposed
  Seconds optimizer;
  friend bool operator==(const Breakdown&, const Breakdown&) = default;
};

struct BreakdownPart {
  std::string_view name;
  Seconds Breakdown::*part;
};

inline constexpr std::array<BreakdownPart, 14> breakdown_parts{{
    {"gemm", &Breakdown::gemm},
    {"attention", &Breakdown::attention},
    {"memory_bound", &Breakdown::memory_bound},
    {"tensor_communication", &Breakdown::tensor_communication},
    {"expert_communication", &Breakdown::expert_communication},
    {"context_communication", &Breakdown::context_communication},
    {"scale_communication", &Breakdown::scale_communication},
    {"recompute", &Breakdown::recompute},
    {"launch_overhead", &Breakdown::launch_overhead},
    {"pipeline_communication", &Breakdown::pipeline_communication},
    {"bubble", &Breakdown::bubble},
    {"data_communication", &Breakdown::data_communication},
    {"host_communication", &Breakdown::host_communication},
    {"optimizer", &Breakdown::optimizer},
}};

struct IterationTime {
  Seconds total;
  Seconds pipeline;  // part of `total` that the schedule delays the next iteration (pipeline_time)
  Breakdown breakdown;
  ExchangeTimes exchanges;  // in the passes of a microbatch through the virtual stages of the busiest rank
  std::size_t critical_rank = 0;  // the busiest pipeline rank, from which the breakdown is seen
  ModelCost cost;                 // of one layer and of the two ends, for one microbatch
  ScheduleShape shape;
  ScheduleTimes times;  // input of the schedule
  ReplayedSchedule schedule;
  friend bool operator==(const IterationTime&, const IterationTime&) = default;
};

// Returns the times of the backward passes that the schedule has. Separate passes for inputs and weights take
// no less in total, since the overlap of GPU and host is decided for each pass. While the host waits for the
// device in a forward pass, the device goes on with an overlapping backward pass.
PassTimes pass_times(const StageCost& stage, const ScheduleShape& shape, const HostRates& rates,
                     const Software& software);
// Sets the members of `times` that depend on the stage's recomputation. Recomputation and the backward pass
// keep the host busy as one pass.
void add_recomputation(PassTimes& times, const StageCost& stage, ScheduleKind schedule,
                       const HostRates& rates, const Software& software);
// Returns the backward pass that follows a recomputation: the whole pass, or the input-gradient pass.
const PassCost& backward_after_recompute(const StageCost& stage, ScheduleKind schedule);

// Work that follows the pipeline on the rank with the most parameters, for which the other ranks wait.
struct IterationEnd {
  DataParallelTimes replicas;   // without overlap
  double buckets = 1;           // number of buckets of the gradient reduction and of the parameter gather
  bool reduces_beside = false;  // the reduction overlaps the last backward pass
  bool gathers_beside = false;  // the gather overlaps the next forward pass
  double overlap_loss = 0;      // CollectiveRates::overlap_loss
  double earlier_groups = 0;    // of microbatches that reduce before the last one (reduces_by_group)
  Seconds tied_embeddings;
  Seconds bucket_copies;          // of gradients to the buckets that are reduced, and back
  Seconds model_copies;           // gradients between the copies of the model that pipeline ranks hold
  bool ranks_step_apart = false;  // no rank waits for another's optimizer step between iterations
  Seconds optimizer;
  friend bool operator==(const IterationEnd&, const IterationEnd&) = default;
};

// Returns the end of an iteration of a rank with `parameters`. `matrices` are the matrices among them, if the
// optimizer steps matrices.
IterationEnd iteration_end(const Transformer& model, const Strategy& strategy, const Workload& workload,
                           const Parameters& parameters, const MatrixList& matrices,
                           std::int64_t devices_per_node, const Performance& performance,
                           const Software& software);

// Exposed part of an IterationEnd.
struct EndTimes {
  Seconds data_communication;
  Seconds optimizer;
  friend bool operator==(const EndTimes&, const EndTimes&) = default;
};

// Times of a microbatch's passes through all chunks of the busiest rank; the passes may hide collectives.
struct PassesBeside {
  Seconds forward;
  Seconds backward;
};
EndTimes end_times(const IterationEnd& end, const PassesBeside& passes);

// Returns whether the end of an iteration depends on the passes that overlap it.
constexpr bool hides_end(const Software& software, const Strategy& strategy) {
  const AxisSizes sizes = axis_sizes(strategy);
  const bool any = replicas(sizes, WeightClass::dense) > 1 || replicas(sizes, WeightClass::expert) > 1;
  return any && (software.overlap_grad_reduce || software.overlap_param_gather);
}

// Returns how long a schedule delays the next iteration. Usually that is until all ranks are done. If each
// rank steps its optimizer by itself, it is the time of the slowest rank. All ranks then start the next
// iteration with the same offsets as this one.
Seconds pipeline_time(const ReplayedSchedule& schedule, const IterationEnd& end);

// Returns the full iteration time, except IterationTime::cost. `stages` are the costs of the virtual stages
// from which `times` were made.
IterationTime iteration_time(const PipelineOrder& order, ScheduleTimes times,
                             std::span<const StageCost> stages, const IterationEnd& end);

}  // namespace headroom

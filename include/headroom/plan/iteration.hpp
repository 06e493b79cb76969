// How long one iteration takes: the virtual stages priced, the schedule run with their times, and what follows the
// pipeline. The parts add up to the whole.
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

// Where an iteration's time goes, seen from the pipeline rank that is busy longest.
struct Breakdown {
  Seconds gemm;                    // of linear layers, forward and backward
  Seconds attention;               // QK^T and the product with V, or flash attention
  Seconds memory_bound;            // kernels: normalizations, softmax, dropout, activations, ...
  Seconds tensor_communication;    // exposed collectives of tensor parallelism
  Seconds expert_communication;    // exposed, between ranks that share experts
  Seconds context_communication;   // exposed, between ranks that share a sequence
  Seconds scale_communication;     // the all-reduce of largest elements that delayed scaling has
  Seconds recompute;               // its GEMMs, kernels and collectives together
  Seconds launch_overhead;         // what launching kernels adds where the GPU runs dry
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
  Seconds pipeline;  // of it: as long as the schedule keeps the next iteration waiting (pipeline_time)
  Breakdown breakdown;
  ExchangeTimes exchanges;  // in the passes of a microbatch through the virtual stages of the busiest rank
  std::size_t critical_rank = 0;  // the busiest pipeline rank, from which the breakdown is seen
  ModelCost cost;                 // of one layer and of the two ends, for one microbatch
  ScheduleShape shape;
  ScheduleTimes times;  // what the schedule was given
  ReplayedSchedule schedule;
  friend bool operator==(const IterationTime&, const IterationTime&) = default;
};

// What a recomputation adds to a backward pass of so much cost and time: together they keep the host busy as one.
Seconds recompute_time(const PassCost& recompute, const PassCost& backward, Seconds backward_time,
                       const HostRates& rates, const Software& software);
// Of the backward passes that a schedule has: where those for weights are apart they take no less together, since
// what the device and the host do beside each other is decided for each pass.
PassTimes pass_times(const StageCost& stage, ScheduleKind schedule, const HostRates& rates,
                     const Software& software);
// The backward pass that a recomputation comes before: all of it, or the one for inputs.
const PassCost& backward_after_recompute(const StageCost& stage, ScheduleKind schedule);

// What follows the pipeline, of a rank with so many parameters: the others wait for the one that has the most.
struct IterationEnd {
  DataParallelTimes replicas;   // as if nothing ran beside them
  double buckets = 1;           // that gradients are reduced, and parameters gathered, in
  bool reduces_beside = false;  // the last backward pass
  bool gathers_beside = false;  // the next forward pass
  double overlap_loss = 0;      // CollectiveRates::overlap_loss
  Seconds tied_embeddings;
  Seconds bucket_copies;          // of gradients to the buckets that are reduced, and back
  Seconds model_copies;           // gradients between the copies of the model that pipeline ranks hold
  bool ranks_step_apart = false;  // from one iteration to the next no rank waits for another's step
  Seconds optimizer;
  friend bool operator==(const IterationEnd&, const IterationEnd&) = default;
};

// `matrices` are those of its parameters, where the optimizer steps matrices.
IterationEnd iteration_end(const Transformer& model, const Strategy& strategy, const Workload& workload,
                           const Parameters& parameters, const MatrixList& matrices,
                           std::int64_t devices_per_node, const Performance& performance,
                           const Software& software);

// What of it shows.
struct EndTimes {
  Seconds data_communication;
  Seconds optimizer;
  friend bool operator==(const EndTimes&, const EndTimes&) = default;
};

// What a pass of one microbatch through all chunks of the busiest rank takes, which may hide collectives.
struct PassesBeside {
  Seconds forward;
  Seconds backward;
};
EndTimes end_times(const IterationEnd& end, const PassesBeside& passes);

// Whether the end of an iteration depends on the passes beside it.
constexpr bool hides_end(const Software& software, const Strategy& strategy) {
  return replicas(strategy) > 1 && (software.overlap_grad_reduce || software.overlap_param_gather);
}

// How long a schedule keeps the next iteration waiting: until all ranks are done or, where each steps its optimizer by itself, as
// long as the one takes that takes longest. All then start the next iteration as much apart as this one.
Seconds pipeline_time(const ReplayedSchedule& schedule, const IterationEnd& end);

// The whole account, but for the cost of a layer. `stages` are the costs of the virtual stages that `times` were made
// from.
IterationTime iteration_time(const ScheduleShape& shape, ScheduleTimes times,
                             std::span<const StageCost> stages, const IterationEnd& end);

}  // namespace headroom

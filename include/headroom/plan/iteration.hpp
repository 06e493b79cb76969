// Time of one iteration: the virtual stages are priced, the schedule is replayed with their times, and what
// follows the pipeline is added. The parts add up to the total.
#pragma once

#include <span>

#include "headroom/plan/iteration_time.hpp"
#include "headroom/schedule/makespan.hpp"
#include "headroom/time/iteration_end.hpp"
#include "headroom/time/optimizer_step.hpp"
#include "headroom/time/stage_time.hpp"
#include "headroom/time/unit_exchanges.hpp"

namespace headroom {

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

// Time of one iteration and its parts, as values. iteration.hpp works them out.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "headroom/core/units.hpp"
#include "headroom/schedule/times.hpp"
#include "headroom/time/costs.hpp"

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

}  // namespace headroom

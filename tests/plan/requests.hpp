// GPT-3 175B on A100s, as K22 ran it: the request that the tests of plans start from.
#pragma once

#include "headroom/io/system_file.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

inline Request gpt3_on_a100() {
  return {.model = {.name = "gpt3-175b",
                    .source = "K22 table 3",
                    .hidden = 12288,
                    .feedforward = 49152,
                    .heads = 96,
                    .key_value_heads = 96,
                    .head_size = 128,
                    .layers = 96,
                    .vocabulary = 51200,
                    .vocabulary_multiple = 128,
                    .sequence = 2048,
                    .max_positions = 2048},
          .system = {.name = "dgx-a100-80g",
                     .source = "K22 section 6",
                     .device = "A100-SXM4-80GB",
                     .memory = 80_GiB,
                     .devices_per_node = 8,
                     .reserves = {{"cuda_context", 1_GiB, ReservePer::device, Origin::assumed, "typical"},
                                  {"nccl", 256_MiB, ReservePer::communicator, Origin::exact, "counted"}}},
          .strategy = {.tensor_parallel = 8,
                       .pipeline_parallel = 8,
                       .virtual_pipeline = 3,
                       .schedule = ScheduleKind::interleaved},
          .workload = {.global_batch = 64, .sequence = 2048}};
}

// On the A100s whose performance is known.
inline Request gpt3_timed() {
  Request request = gpt3_on_a100();
  request.system.performance = read_system("dgx-a100-80g").performance;
  return request;
}

inline Request with_both_techniques(Request request) {
  request.strategy.sequence_parallel = true;
  request.strategy.recompute.policy = RecomputePolicy::selective;
  return request;
}

}  // namespace headroom

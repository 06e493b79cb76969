// Requests whose allocators are replayed, for properties.
#pragma once

#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

inline Strategy any_replayed_strategy(const Request& request) {
  const auto size = [] { return *rc::gen::element<std::int64_t>(1, 2, 4); };
  Strategy strategy{.tensor_parallel = size(),
                    .pipeline_parallel = size(),
                    .virtual_pipeline = *rc::gen::element<std::int64_t>(1, 1, 2, 3),
                    .data_parallel = *rc::gen::element<std::int64_t>(1, 2, 4)};
  strategy.sequence_parallel = strategy.tensor_parallel > 1;
  if (any_experts(request.model)) {
    strategy.expert_parallel = *rc::gen::element<std::int64_t>(1, 2, 4);
    strategy.overlap_expert_all_to_all = strategy.expert_parallel > 1 && *rc::gen::arbitrary<bool>();
  }
  strategy.data_sharding = *rc::gen::elementOf(request.software.sharding.modes);
  strategy.recompute.policy = *rc::gen::elementOf(request.software.recompute);
  if (strategy.virtual_pipeline > 1) {
    strategy.schedule = ScheduleKind::interleaved;
    strategy.microbatch_group_size = *rc::gen::element<std::int64_t>(0, 0, 3, 5);
  }
  return strategy;
}

inline Request any_replayed_request() {
  const char* const model = *rc::gen::element("gpt-22b", "llama-3-8b", "mixtral-8x7b", "deepseek-v2-lite");
  const char* const software = *rc::gen::element("megatron-core-2025", "torchtitan-2025", "megatron-2022");
  const Transformer of = with_layers(read_model(model), *rc::gen::inRange<std::int64_t>(4, 13));
  Request request{.model = of,
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software(software),
                  .strategy = {},
                  .workload = {.global_batch = *rc::gen::element<std::int64_t>(8, 24, 40, 60, 256),
                               .sequence = *rc::gen::element<std::int64_t>(1024, 4096)}};
  request.strategy = any_replayed_strategy(request);
  return request;
}

}  // namespace headroom

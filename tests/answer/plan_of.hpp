// A plan on DGX A100s, by the names of its model and stack, at the model's own sequence.
#pragma once

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

inline Plan plan_of(const char* model, const char* software, const Strategy& strategy, std::int64_t batch) {
  const Transformer of = read_model(model);
  return account(evaluate({.model = of,
                           .system = read_system("dgx-a100-80g"),
                           .software = read_software(software),
                           .strategy = strategy,
                           .workload = {.global_batch = batch, .sequence = of.sequence}}));
}

}  // namespace headroom

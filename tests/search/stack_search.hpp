// The whole space of a stack for a shipped model on a shipped system.
#pragma once

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/search/confirm.hpp"

namespace headroom {

inline Searched searched(const char* model, const char* system, const char* software, std::int64_t devices,
                         std::int64_t batch) {
  Searched it;
  it.base.model = read_model(model);
  it.base.system = read_system(system);
  it.base.software = read_software(software);
  it.base.model = with_attention(it.base.model, it.base.software.attention_kernel);
  it.base.strategy = with_stack_defaults({}, it.base.software, it.base.model);
  it.base.workload = {.global_batch = batch, .sequence = it.base.model.sequence};
  it.space = {.devices = devices,
              .layouts = layouts_of(it.base.software),
              .schedules = searched_schedules(it.base.software)};
  return it;
}

}  // namespace headroom

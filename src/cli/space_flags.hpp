// The flags that pin or bound what a search leaves open.
#pragma once

#include "cli/flags.hpp"
#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/search/space.hpp"

namespace headroom::cli {

// Lists are values with commas between them.
struct CountFlags {
  FlagText only;
  FlagText most;
};

struct SpaceFlags {
  FlagText devices;
  CountFlags tensor_parallel;
  CountFlags pipeline_parallel;
  CountFlags virtual_pipeline;
  CountFlags data_parallel;
  CountFlags micro_batch;
  FlagText sequence_parallel;
  FlagText distributed_optimizer;
  FlagText recompute;
  bool no_recompute_layers = false;
  bool recompute_window = false;
  FlagText schedule;
};

void add_space_flags(Command command, SpaceFlags& flags);

// All flags that say what is searched: the model, the batch, the system and the space.
void add_search_flags(Command command, RequestFlags& request, SystemFlags& system, SpaceFlags& space);

// Every mistake is added to `problems`.
Space read_space(const SpaceFlags& flags, std::vector<Problem>& problems);

}  // namespace headroom::cli

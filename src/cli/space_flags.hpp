// The flags that pin or bound what a search leaves open: one for each field that a space sets.
#pragma once

#include <array>

#include "cli/flags.hpp"
#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/search/space.hpp"

namespace headroom::cli {

// What was given for a field of the space. Lists are values with commas between them.
struct SpaceFlag {
  FlagText values;
  FlagText most;    // of a count
  bool on = false;  // of a flag without a value
};

struct SpaceFlags {
  FlagText devices;
  std::array<SpaceFlag, space_fields.size()> fields;
  FlagText layout;
  bool fast = false;
  bool try_offload = false;
};

void add_space_flags(Command command, SpaceFlags& flags);

// All flags that say what is searched: the model, the batch, the system and the space.
void add_search_flags(Command command, RequestFlags& request, SystemFlags& system, SpaceFlags& space);

// Gives a search whose flags name no batch the usual one of its GPUs.
void use_default_batch(const RequestFlags& flags, const Space& space, Request& request);

// Of what the software can launch, unless the flags say otherwise. Every mistake is added to `problems`.
Space read_space(const SpaceFlags& flags, const Software& software, std::vector<Problem>& problems);

}  // namespace headroom::cli

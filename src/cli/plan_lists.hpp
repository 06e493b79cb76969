// The flags of plan that take several of what a search has one of: systems at their prices, numbers of GPUs, global batches.
#pragma once

#include "cli/request_flags.hpp"
#include "cli/space_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/answer/plan.hpp"

namespace headroom::cli {

struct ListFlags {
  FlagText batch_range;
  FlagText prices;
};

void add_list_flags(Command command, ListFlags& flags);

// Leaves the first of each list in the flags that hold them, which are read as those of one search, and returns the lists.
struct Lists {
  std::vector<std::string> systems;
  FlagText devices;
  FlagText global_batches;
};
Lists take_lists(RequestFlags& request, SystemFlags& system, SpaceFlags& space);

// Puts the numbers of GPUs into a question; the first is that of the space. Every mistake is added to `problems`.
void read_devices(const Lists& lists, PlanQuestion& question, std::vector<Problem>& problems);

// Puts what else is compared into a question whose base and space have been read. Every mistake is added to `problems`.
void read_lists(const Lists& lists, const ListFlags& flags, const RequestFlags& asked,
                const SystemFlags& system, const SpaceFlags& space, PlanQuestion& question,
                std::vector<Problem>& problems);

}  // namespace headroom::cli

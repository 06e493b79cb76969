// The flags that ask what a whole training run takes: tokens, a price, a power, and what fails.
#pragma once

#include "cli/flags.hpp"
#include "headroom/plan/capacity.hpp"

namespace headroom::cli {

struct CapacityFlags {
  FlagText tokens;
  FlagText price;
  FlagText currency;
  FlagText power;
  FlagText mtbf;
  FlagText checkpoint_time;
  FlagText checkpoint_interval;
  FlagText restart_time;
  FlagText spares;
  FlagText repair_time;
};

void add_capacity_flags(Command command, CapacityFlags& flags);

// Every mistake is added to `problems`.
Training read_training(const CapacityFlags& flags, std::vector<Problem>& problems);

}  // namespace headroom::cli

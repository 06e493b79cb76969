// The flags that say what a request runs on: a system and a training stack.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.hpp"
#include "cli/request_flags.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom::cli {

struct SystemFlags {
  std::string system = "dgx-a100-80g";
  bool names_system = false;  // --system was given
  std::vector<std::string> overrides;
  std::string software;  // empty: the system's
  std::vector<std::string> software_overrides;
  FlagText margin;
};

// Those of the system alone.
void add_hardware_flags(Command command, SystemFlags& flags);

// Those of the stack alone.
void add_software_flags(Command command, SystemFlags& flags);

void add_system_flags(Command command, SystemFlags& flags);

// Puts the margin into the request, where there is one.
void read_margin(const SystemFlags& flags, Request& request, std::vector<Problem>& problems);

// Puts the stack into the request, by default that of its system. Every mistake is added to `problems`.
void read_software_flags(const SystemFlags& flags, Request& request, std::vector<Problem>& problems);

// Puts system and software into the request. Every mistake is added to `problems`.
void read_system_flags(const SystemFlags& flags, Request& request, std::vector<Problem>& problems);

// Sets what no flag names to the stack's defaults: optimizer state, gradient dtype, schedule, and what
// data-parallel ranks divide.
void use_stack_defaults(const RequestFlags& asked, Request& request);
// Returns the request that the flags make, on its system, with the stack's defaults. Every mistake is added
// to `problems`.
Request read_request_on(const RequestFlags& asked, const SystemFlags& system, std::vector<Problem>& problems);
// use_stack_defaults() without schedule and data sharding, which a search chooses.
void use_stack_optimizer(const RequestFlags& asked, Request& request);

}  // namespace headroom::cli

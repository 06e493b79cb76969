// What a script says of its job: how many GPUs, and what depends on conditions that only a run knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interop/launch_in/program.hpp"
#include "interop/launch_in/setting.hpp"

namespace headroom {

// Reads GPUs of a node and of the job from launchers and job options. Returns false if only a run knows them.
bool read_sizes(const shell::Followed& script, const Program& program, RunBuilder& run,
                std::optional<std::int64_t>& devices);

// Remarks on conditions that only a run knows, and how they are taken.
void tell_conditions(const shell::Followed& script, RunBuilder& run);

// Returns what the first condition needs that is taken as false for want of it; empty: there is none.
std::string need_of_conditions(const shell::Followed& script);

}  // namespace headroom

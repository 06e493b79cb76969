// What a script says of its job: how many GPUs, and what depends on conditions that only a run knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interop/launch_in/program.hpp"
#include "interop/launch_in/setting.hpp"

namespace headroom {

// Reads the GPUs of a node and of the job, as the launchers and the job say them. Returns false where they say so in
// words that only a run knows.
bool read_sizes(const shell::Followed& script, const Program& program, RunBuilder& run,
                std::optional<std::int64_t>& devices);

// Remarks on conditions that only a run knows, and how they are taken.
void tell_conditions(const shell::Followed& script, RunBuilder& run);

// Returns what the first condition needs that is taken as false since only a run knows it; empty: there is none.
std::string need_of_conditions(const shell::Followed& script);

}  // namespace headroom

// Commands that a reply names for whoever wants to go on: the same model, system and batch, asked otherwise.
#pragma once

#include <string>

#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"

namespace headroom::cli {

// "headroom estimate MODEL ... --global-batch N", quoted for a shell: what is to follow are the flags of a strategy.
std::string estimate_command(const RequestFlags& request, const SystemFlags& system);

// The same, with the batch and the strategy of a request.
std::string estimate_command(const RequestFlags& flags, const SystemFlags& system, const Request& request);

// The search over all strategies of the devices that a request uses.
std::string plan_command(const RequestFlags& flags, const SystemFlags& system, const Request& request);

}  // namespace headroom::cli

// Launches of each program, without title and common environment. For launch.cpp.
#pragma once

#include "headroom/interop/launch.hpp"

namespace headroom {

// `request` has the strategy that the launcher is told, and a stack with the target's launcher. Each fills in files, environment, command and
// lacks of a launch whose target, release and flags are set.
void write_megatron(const Request& request, Launch& launch);  // and zero_bubble
void write_bridge(const Request& request, Launch& launch);
void write_nemo(const Request& request, Launch& launch);
void write_titan(const Request& request, Launch& launch);
void write_deepspeed(const Request& request, Launch& launch);
void write_accelerate(const Request& request, Launch& launch);  // and trainer
void write_llama_factory(const Request& request, Launch& launch);
void write_axolotl(const Request& request, Launch& launch);
void write_nanotron(const Request& request, Launch& launch);

}  // namespace headroom

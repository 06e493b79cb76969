// Strategies in the flags of Megatron-LM and of what is built on it. For launch_flags.cpp.
#pragma once

#include "headroom/interop/launch_flags.hpp"

namespace headroom {

LaunchFlags megatron_flags(const Transformer& model, const Strategy& strategy, const Workload& workload,
                           const Software& software);

}  // namespace headroom

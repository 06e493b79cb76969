// Strategies in the flags of torchtitan. For launch_flags.cpp.
#pragma once

#include "headroom/interop/launch_flags.hpp"

namespace headroom {

LaunchFlags titan_flags(const Transformer& model, const Strategy& strategy, const Workload& workload,
                        const Software& software);

}  // namespace headroom

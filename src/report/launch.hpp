// The flags of a stack's launcher, as a report shows them.
#pragma once

#include <string>

#include "headroom/interop/launch_flags.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// In lines, with what the launcher has no flag for.
std::string launch_text(const LaunchFlags& launch, const Style& style);

// Returns what Megatron-Core must be told: an uneven layout of layers, and groups with more microbatches than
// ranks; otherwise nothing.
std::string launch_line(const Transformer& model, const Strategy& strategy);

}  // namespace headroom

// The flags of a stack's launcher, as a report shows them.
#pragma once

#include <string>

#include "headroom/interop/launch_flags.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// In lines, with what the launcher has no flag for.
std::string launch_text(const LaunchFlags& launch, const Style& style);

}  // namespace headroom

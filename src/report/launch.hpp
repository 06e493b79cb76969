// A launch, as a report shows it.
#pragma once

#include <optional>
#include <string>

#include "headroom/interop/launch.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Returns the files one after the other, behind their names, and what they do not say. Nothing without a launch.
std::string launch_text(const std::optional<Launch>& launch, const Style& style);

// Returns an uneven layout of layers, with Megatron-Core's flag for it, and groups with more microbatches than
// ranks; otherwise nothing.
std::string launch_line(const Transformer& model, const Software& software, const Strategy& strategy);

}  // namespace headroom

// Fields of a strategy that a launcher has words for. Rules of launchers (parallel/rules/launchers.cpp) refuse
// any other field that differs from the stack's default, and a launch (interop/launch.hpp) leaves it out.
#pragma once

#include <string_view>

#include "headroom/hardware/software.hpp"

namespace headroom {

// Returns whether the launcher's flags express the field, or it follows from the number of GPUs.
bool has_words(Launcher launcher, std::string_view field);

}  // namespace headroom

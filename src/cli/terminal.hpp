// The terminal that standard output goes to.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace headroom::cli {

// The narrowest screen that is written for.
inline constexpr std::size_t least_columns = 40;

// A variable of the environment; empty if it is not set.
std::string_view environment(const char* name);

// Columns of the screen: COLUMNS if it is set, else the terminal's. None where neither tells.
std::optional<std::size_t> screen_columns();

}  // namespace headroom::cli

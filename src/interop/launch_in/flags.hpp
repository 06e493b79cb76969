// Looks up and renames flags in the list of a command's flags.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "interop/launch_in/setting.hpp"

namespace headroom {

// Returns the last flag of that name, which overrides earlier ones [Python, argparse], or null.
Written* flag_of(std::vector<Written>& written, std::string_view name);
const Written* flag_of(const std::vector<Written>& written, std::string_view name);
bool has_flag(const std::vector<Written>& written, std::string_view name);

// Returns the whole number of a flag; nothing if there is none, or only a run knows it.
std::optional<std::int64_t> count_in_flag(const std::vector<Written>& written, std::string_view name);

// Gives flags other names: {theirs, ours}.
void rename(std::vector<Written>& written, std::initializer_list<std::array<std::string_view, 2>> names);

}  // namespace headroom

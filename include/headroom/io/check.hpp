// Implements `headroom check FILE`: detects the kind of a file and validates it.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Returns what a file holds, told by its keys: "model", "system", "software", "source", "spreads", "samples",
// "measurements" or "runs". Throws InputError if the file is of no such kind or not valid.
std::string_view check_file(const std::string& path);

}  // namespace headroom

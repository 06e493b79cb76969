// `headroom check FILE`: what kind of file is this, and is it a valid one?
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// What a file holds, told by its keys: "model", "system", "software", "source", "spreads", "samples", "measurements" or
// "runs". Throws InputError when it holds none of them, or is not valid.
std::string_view check_file(const std::string& path);

}  // namespace headroom

// The difference of two texts, as patch(1) reads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Returns the lines of a text, each with its end, which the last one may lack.
std::vector<std::string_view> ended_lines(std::string_view text);

// Returns the difference as `diff -u` writes it, with three lines of context; empty if the texts are equal.
std::string unified_diff(const std::string& file, std::string_view before, std::string_view after);

}  // namespace headroom

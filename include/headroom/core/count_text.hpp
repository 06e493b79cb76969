// Counts as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// "65536", "1,000,000" and "64k": commas stand between groups of three digits, and k and M are 1024 and 1024^2, as in "an 8k
// context" and "16k GPUs". None where the text is no whole number; one that is too large is the largest there is.
std::optional<std::int64_t> count_of(std::string_view text);

// Without the commas between groups of three digits. Where they do not stand there they stay, and make it no number.
std::string without_commas(std::string_view text);

}  // namespace headroom

// Reading of counts as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// Returns the count that a text states: "65536", "1,000,000" or "64k". Commas separate groups of three
// digits. k and M are 1024 and 1024^2, as in "an 8k context" and "16k GPUs". Returns nothing if the text is
// no whole number, and the largest count if the number is too large.
std::optional<std::int64_t> count_of(std::string_view text);

// Returns the text without the commas that separate groups of three digits. Misplaced commas stay, so that
// the text is no number.
std::string without_commas(std::string_view text);

}  // namespace headroom

// Spread files, format 1, in presets/spreads/: errors of predictions of measured runs, from which intervals
// follow (plan/interval.hpp). `headroom schema spreads` prints the JSON schema.
#pragma once

#include <string>
#include <string_view>

#include "headroom/plan/interval.hpp"

namespace headroom {

// Returns the spreads in a file's text; `file` is its name. Throws InputError.
Spreads parse_spreads(std::string_view text, const std::string& file);

// Returns the embedded spreads, which come from the development runs.
const Spreads& embedded_spreads();

}  // namespace headroom

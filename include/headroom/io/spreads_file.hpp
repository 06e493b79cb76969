// Spread files, format 1, in presets/spreads/: how far predictions of measured runs were off, which makes the intervals
// (plan/interval.hpp). `headroom schema spreads` says the same to other tools.
#pragma once

#include <string>
#include <string_view>

#include "headroom/plan/interval.hpp"

namespace headroom {

// The spreads in a file's text; `file` is its name. Throws InputError.
Spreads parse_spreads(std::string_view text, const std::string& file);

// The embedded ones, which the development runs gave.
const Spreads& embedded_spreads();

}  // namespace headroom

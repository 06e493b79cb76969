// Page of plots of runs: predicted against measured time and memory, and the distribution of errors in each
// group. The HTML needs no other file and no script, and follows the light or dark colour scheme of the
// browser.
#pragma once

#include <string>

#include "headroom/answer/validate.hpp"

namespace headroom {

// Returns the page: both plots, the groups with the worst median first, and a table of all rows with the
// largest error first. Expects at least one row.
std::string run_page(const ValidateReply& reply, const std::string& title);

// Returns only the plots, as SVG to embed as an image, without names of rows. Expects a row of time or of
// memory.
std::string run_picture(const ValidateReply& reply, const std::string& title);

}  // namespace headroom

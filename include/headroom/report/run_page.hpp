// A page of figures of runs: predicted against measured time and memory, and how errors are distributed within each group. HTML
// that needs no other file and no script, in the light or dark colours that the reader's browser asks for.
#pragma once

#include <string>

#include "headroom/answer/validate.hpp"

namespace headroom {

// Both plots, the groups with the worst median first, and a table of all rows with the largest error first. Expects at
// least one row.
std::string run_page(const ValidateReply& reply, const std::string& title);

// The plots alone, as SVG for a document that shows it as an image, without names of rows. Expects a row of time or of memory.
std::string run_picture(const ValidateReply& reply, const std::string& title);

}  // namespace headroom

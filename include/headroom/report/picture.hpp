// Picture of a reply: one SVG, of estimate the memory of each pipeline rank and where the iteration goes, of plan these
// of its first plan and the Pareto front, of compare both sides, of frontier and sweep their points.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Returns the picture of a reply in JSON: of estimate, plan, compare, frontier or sweep. Its numbers are those of the
// reply. `name`: how errors call the reply. Throws InputError if the text is not JSON, no such reply, or holds nothing
// to draw.
std::string picture(std::string_view reply, const std::string& name);

}  // namespace headroom

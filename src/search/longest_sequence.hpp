// Finds the longest sequence for which something of a space fits.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/plan/plan.hpp"
#include "headroom/search/find.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

// Returns a multiple of the question's step, at most its `most`, or nothing if not even the shortest fits. If
// the space leaves the context-parallel size open, longer sequences are divided over more ranks, as in a
// search at that length.
std::optional<std::int64_t> longest_sequence(const Request& base, const Space& space,
                                             const Question& question);

}  // namespace headroom

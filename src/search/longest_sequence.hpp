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
                                             const Question& question, const Watch& watch);

// A part of a space that no layout is missing from which fits at `from` tokens or more.
struct NarrowedSpace {
  Space space;
  std::int64_t from = 0;
};

// Returns the part of the space for sequences from about 3/4 of `longest`, the longest that fit: it has only the
// sizes of layouts that fit there, since no others fit at longer sequences or in less memory.
NarrowedSpace narrowed(const Request& base, const Space& space, const Question& question,
                       std::int64_t longest, const Watch& watch);

}  // namespace headroom

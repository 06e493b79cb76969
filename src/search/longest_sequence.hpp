// Finds the longest sequence for which something of a space fits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/plan/plan.hpp"
#include "headroom/search/find.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

// Returns a multiple of the question's step, at most its `most`, or nothing if not even the shortest fits. If
// the space leaves the context-parallel size open, longer sequences are divided over more ranks, as in a
// search at that length.
std::optional<std::int64_t> longest_sequence(const Request& base, const Space& space,
                                             const Question& question, const Watch& watch);

// All layouts of a space that fit at `from` tokens, in the space's order. No others fit at longer sequences or in less
// memory.
struct KnownLayouts {
  std::vector<Strategy> layouts;
  std::int64_t from = 0;
};

// Returns the layouts that fit at about 3/4 of `longest`, the longest that fit.
KnownLayouts known_layouts(const Request& base, const Space& space, const Question& question,
                           std::int64_t longest, const Watch& watch);

// Returns the same, from `known.from` on, in no more memory than the layouts were found with. Returns nothing if it is
// shorter, or if none of the layouts that fit has a context-parallel size that the space allows.
std::optional<std::int64_t> longest_sequence(const Request& base, const Space& space,
                                             const Question& question, const KnownLayouts& known,
                                             const Watch& watch);

}  // namespace headroom

// Alternatives to a strategy that is not legal or does not fit.
#pragma once

#include <optional>
#include <vector>

#include "headroom/search/space.hpp"

namespace headroom {

// Returns the distance of two strategies: doublings of t, p, m and b between them, plus one for each other
// choice that differs (two from no recomputation to full). The data-parallel size follows from the GPUs and
// does not count.
double distance(const Strategy& x, const Strategy& y);

// Returns up to `most` nearest strategies of a space that fit, each with different t, p, m and b. Of equally
// near ones, the earlier in the space comes first. Only memory is considered; performance need not be known.
std::vector<Strategy> nearest_that_fit(const Request& base, const Space& space, const Strategy& strategy,
                                       std::size_t most);

// Returns the nearest strategy of a space, whether it fits or not. Of equally near ones, returns the one that
// differs in the fewest fields, then the earliest in the space. Returns nothing if the space is empty.
std::optional<Strategy> nearest_in(const Request& base, const Space& space, const Strategy& strategy);

}  // namespace headroom

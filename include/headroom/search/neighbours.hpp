// What to try instead of a strategy that is not legal or does not fit.
#pragma once

#include <optional>
#include <vector>

#include "headroom/search/space.hpp"

namespace headroom {

// How far two strategies are from each other: doublings of t, p, m and b between them, and one for each other choice
// that differs (two from no recomputation to full). The data-parallel size follows from the devices and does not count.
double distance(const Strategy& x, const Strategy& y);

// The nearest strategies of a space that fit, up to `most`, each with a t, p, m and b of its own; of those equally near
// the earlier in the space. By memory alone: no time need be known.
std::vector<Strategy> nearest_that_fit(const Request& base, const Space& space, const Strategy& strategy,
                                       std::size_t most);

// The nearest strategy of a space, whether it fits or not: of those equally near the one that differs in the fewest fields, and of
// these the earliest in the space. Nothing of an empty space.
std::optional<Strategy> nearest_in(const Request& base, const Space& space, const Strategy& strategy);

}  // namespace headroom

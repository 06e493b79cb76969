// How long sequences can be until nothing of a space fits.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/plan/plan.hpp"
#include "headroom/search/find.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

// In multiples of the question's step, at most its most; none if not even the shortest fits. Where the space leaves open over
// how many ranks sequences are divided, a longer one is divided over more, as a search of that length does.
std::optional<std::int64_t> longest_sequence(const Request& base, const Space& space,
                                             const Question& question);

}  // namespace headroom

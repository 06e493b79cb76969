// A search over several numbers of devices: what each of them buys.
#pragma once

#include <span>

#include "headroom/search/search.hpp"

namespace headroom {

// Whether x takes no more time, memory and devices than y. Of two that take the same, both dominate.
bool dominates(const Candidate& x, const Candidate& y);

// The result of searching the space on each of the numbers of devices: `plans` holds the best of each number, fastest
// first, `pareto` those that no other beats in time, peak memory and devices together. `counts` are distinct; of
// strategies that tie, the earlier in the space of its number stands for both.
SearchResult search_device_counts(const Request& base, const Space& space,
                                  std::span<const std::int64_t> counts, const SearchOptions& options = {});

}  // namespace headroom

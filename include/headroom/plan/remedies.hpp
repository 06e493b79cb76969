// What to change about a plan: to make it fit, or to make it faster.
#pragma once

#include <vector>

#include "headroom/plan/changes.hpp"

namespace headroom {

// A request with some changes made, which fits.
struct Alternative {
  std::vector<Edits> changes;
  Plan plan;
  friend bool operator==(const Alternative&, const Alternative&) = default;
};

// What follows keeps the number of devices, can be launched as the request can, and never names a strategy twice.

// For a request that does not fit: up to `most` single changes or pairs of them that make it fit. What fits comes before
// what is marginal, then the fastest where time is known, else fewest changes; none holds a change that its verdict could
// do without. Where no other change helps, what the host can keep is tried too. Empty when nothing helps.
std::vector<Alternative> remedies(const Request& request, std::size_t most);

// For one that fits: up to `most` single changes or pairs of them that fit with at least as good a verdict and are faster
// by a tenth of a percent or more; fastest first, each with a first change of its own. Empty where time is not known.
std::vector<Alternative> improvements(const Plan& plan, std::size_t most);

}  // namespace headroom

// Changes that make a plan fit, or make it faster.
#pragma once

#include <vector>

#include "headroom/plan/changes.hpp"

namespace headroom {

// Plan that fits by settled_verdict(), and the changes that lead to it. It has no AllocatorUse.
struct Alternative {
  std::vector<Edits> changes;
  Plan plan;
  friend bool operator==(const Alternative&, const Alternative&) = default;
};

// Alternatives from both functions keep the number of GPUs, can be launched as the request can, and never
// repeat a strategy.

// Returns up to `most` single changes or pairs of changes that make a request fit. Expects a request that
// does not fit. Alternatives that fit precede marginal ones; then the fastest come first, or those with the
// fewest changes if times are unknown. No alternative holds a change that its verdict could do without.
// Offloading is tried only if no other change helps. Empty if nothing helps.
std::vector<Alternative> remedies(const Request& request, std::size_t most);

// Returns up to `most` single changes or pairs of changes that make a plan faster by at least 0.1% with a
// verdict at least as good. Expects a plan that fits. The fastest comes first, and each has a first change of
// its own. Empty if times are unknown.
std::vector<Alternative> improvements(const Plan& plan, std::size_t most);

}  // namespace headroom

// What limits an answer: what memory keeps the best plan from, and what would make a request feasible.
#pragma once

#include <optional>
#include <vector>

#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/find.hpp"

namespace headroom {

// A change that would make a plan faster, but for which there is no memory.
struct BlockedChange {
  Edits change;
  Seconds iteration;
  Bytes missing;
  friend bool operator==(const BlockedChange&, const BlockedChange&) = default;
};

// The fastest of the changes on the same devices that do not fit, if any would be faster.
std::optional<BlockedChange> blocked_by_memory(const Plan& plan);

// What would make a space feasible, one thing at a time: the fewest devices, the largest smaller batch, the longest
// shorter sequence. Those that no value helps have none.
std::vector<Found> relief(const Request& base, const Space& space);

}  // namespace headroom

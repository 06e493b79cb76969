// What limits an answer: what memory keeps the best plan from, what 16 bits do, and what would make a request feasible.
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
  bool of_host = false;  // of the memory of a host
  friend bool operator==(const BlockedChange&, const BlockedChange&) = default;
};

// The fastest of the changes on the same devices that do not fit, if any would be faster.
std::optional<BlockedChange> blocked_by_memory(const Plan& plan);

// What a plan of 16 bits would take with its linears in FP8. That is another arithmetic, so that nothing chooses it unasked.
struct NarrowerPlan {
  Precision precision = Precision::fp8;
  Seconds iteration;
  Bytes peak;
  Verdict verdict = Verdict::fits;
  friend bool operator==(const NarrowerPlan&, const NarrowerPlan&) = default;
};

// In the fastest of the FP8 precisions in which the strategy is legal and its devices multiply; none where none is faster. Expects a
// system whose performance is known.
std::optional<NarrowerPlan> in_fp8(const Plan& plan);

// What would make a space feasible, one thing at a time: the fewest devices, the largest smaller batch, the longest
// shorter sequence. Those that no value helps have none.
std::vector<Found> relief(const Request& base, const Space& space);

}  // namespace headroom

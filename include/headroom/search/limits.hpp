// Limits of an answer: faster changes that memory rules out, what FP8 would gain, and what would make a
// request feasible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/parallel/edits.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/find.hpp"

namespace headroom {

// A change that would make a plan faster, but for which memory is missing.
struct BlockedChange {
  Edits change;
  Seconds iteration;
  Bytes missing;
  bool of_host = false;  // host memory is missing, not GPU memory
  friend bool operator==(const BlockedChange&, const BlockedChange&) = default;
};

// Returns the fastest change on the same GPUs that does not fit, if any would be faster.
std::optional<BlockedChange> blocked_by_memory(const Plan& plan);

// A BF16 plan with its linear layers in FP8. FP8 changes the numerics, so it is never chosen unasked.
struct NarrowerPlan {
  Precision precision = Precision::fp8;
  Seconds iteration;
  Bytes peak;
  Verdict verdict = Verdict::fits;
  friend bool operator==(const NarrowerPlan&, const NarrowerPlan&) = default;
};

// Returns the plan in the fastest FP8 precision in which the strategy is legal, that its GPUs support and
// that its stack launches, or nothing if none is faster. Expects a system whose performance is known.
std::optional<NarrowerPlan> in_fp8(const Plan& plan);

// A change that a search does not try unasked, since the stack's release lacks it, it changes the arithmetic, it
// needs more than a flag, or nobody measured its kernels; with the plan that has it.
struct LeftOut {
  std::string change;  // as flags, of the strategy or of the training stack
  Seconds iteration;
  Bytes peak;
  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

inline constexpr std::size_t most_left_out = 5;

// Returns the changes within a space that would make its plan faster by half a percent and fit as well: the
// fastest of each field, fastest first. Expects a system whose performance is known.
std::vector<LeftOut> left_out(const Plan& plan, const Space& space);

// Returns what would make a space feasible, one thing at a time: the fewest GPUs, the largest smaller batch,
// the longest shorter sequence. Leaves out a size for which no value helps.
std::vector<Found> relief(const Request& base, const Space& space, const Watch& watch = {});

}  // namespace headroom

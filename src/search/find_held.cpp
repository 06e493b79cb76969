#include "headroom/search/find_held.hpp"

#include <array>
#include <optional>

#include "headroom/search/confirm.hpp"
#include "headroom/search/feasibility.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

// Returns the request and space with a value of the size in question.
Searched at_value(const Request& base, const Space& space, Extreme extreme, std::int64_t value) {
  Searched at{.base = base, .space = space};
  put(extreme, value, at.base, at.space);
  return at;
}

// Returns whether some strategy fits by the memory that PyTorch reserves. Tries ever leaner strategies.
bool fits_held(const Searched& at) {
  Request tight = at.base;
  for (int i = 0; i < most_settling_tries; ++i) {
    const std::optional<Strategy> fitting = Feasibility(tight).fitting_strategy(at.space);
    if (!fitting) return false;
    const Candidate candidate = settled_candidate(at.base, {.strategy = *fitting});
    if (candidate.verdict == Verdict::fits) return true;
    const Bytes most = candidate.peak - excess(at.base, candidate);
    if (most <= Bytes(0)) return false;
    tight.system.memory = (1 / (1 - at.base.margin)) * most;
  }
  return false;
}

// Returns a value in [held, too_much) at which some strategy fits by the memory that PyTorch reserves: the
// largest, to 1/64 of the range, since each value takes a simulation or more. Expects `held` to be such a
// value.
std::int64_t furthest_held(const Request& base, const Space& space, const Question& question,
                           std::int64_t held, std::int64_t too_much) {
  constexpr int most_halvings = 6;
  for (int i = 0; i < most_halvings; ++i) {
    const std::int64_t middle = held + (too_much - held) / 2 / question.step * question.step;
    if (middle <= held) break;
    (fits_held(at_value(base, space, question.extreme, middle)) ? held : too_much) = middle;
  }
  return held;
}

}  // namespace

Found find_held(const Request& base, const Space& space, const Question& question) {
  return find_held(base, space, question, std::array{base.workload.global_batch});
}

Found find_held(const Request& base, const Space& space, const Question& question,
                std::span<const std::int64_t> global_batches) {
  Request tight = base;
  std::optional<std::int64_t> too_much;
  for (int i = 0;; ++i) {
    Found found = find(tight, space, question, global_batches);
    // A microbatch or a time limit needs other strategies than the leanest.
    if (!found.value || question.within || question.run || i == most_settling_tries) return found;
    const Searched at = at_value(base, space, question.extreme, *found.value);
    Request leaner = at.base;
    leaner.system.memory = tight.system.memory;
    const std::optional<Strategy> fitting = Feasibility(leaner).fitting_strategy(at.space);
    if (!fitting) return found;
    const Candidate candidate = settled_candidate(at.base, {.strategy = *fitting});
    if (candidate.verdict == Verdict::fits) {
      if (too_much) found.value = furthest_held(base, space, question, *found.value, *too_much);
      return found;
    }
    if (question.extreme != Extreme::min_devices) too_much = found.value;
    const Bytes most = tight.system.memory - excess(base, candidate);
    if (most <= Bytes(0)) return found;
    tight.system.memory = most;
  }
}

}  // namespace headroom

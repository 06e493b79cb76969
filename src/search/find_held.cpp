#include "headroom/search/find_held.hpp"

#include <array>
#include <optional>

#include "headroom/search/confirm.hpp"
#include "headroom/search/feasibility.hpp"
#include "search/largest.hpp"
#include "search/longest_sequence.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

// Returns the request and space with a value of the size in question.
Searched at_value(const Request& base, const Space& space, Extreme extreme, std::int64_t value) {
  Searched at{.base = base, .space = space};
  put(extreme, value, at.base, at.space);
  return at;
}

// Returns a strategy that fits: of the layouts if they are known, or else of the whole space.
std::optional<Strategy> fitting_in(const Request& request, const Space& space, const KnownLayouts& known,
                                   const Watch& watch) {
  Feasibility feasibility(request, watch);
  return known.layouts.empty() ? feasibility.fitting_strategy(space)
                               : feasibility.fitting_strategy(space, known.layouts);
}

// Returns whether some strategy fits by the memory that PyTorch reserves. Tries ever leaner strategies.
bool fits_held(const Searched& at, const KnownLayouts& known, const Watch& watch) {
  Request tight = at.base;
  for (int i = 0; i < most_settling_tries; ++i) {
    const std::optional<Strategy> fitting = fitting_in(tight, at.space, known, watch);
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
                           const KnownLayouts& known, std::int64_t held, std::int64_t too_much,
                           const Watch& watch) {
  constexpr int most_halvings = 6;
  for (int i = 0; i < most_halvings && !stops(watch); ++i) {
    const std::int64_t middle = held + (too_much - held) / 2 / question.step * question.step;
    if (middle <= held) break;
    tell(watch, finding, middle);
    (fits_held(at_value(base, space, question.extreme, middle), known, watch) ? held : too_much) = middle;
  }
  return held;
}

Found find_held_in(const Request& base, const Space& space, const Question& question,
                   std::span<const std::int64_t> global_batches, const Watch& watch) {
  Request tight = base;
  std::optional<std::int64_t> too_much;
  KnownLayouts known;
  for (int i = 0;; ++i) {
    Found found{.question = question};
    // Retries twice with the layouts of shorter sequences. Each retry takes a third of find().
    for (int shorter = 0; !known.layouts.empty() && !found.value && !found.stopped; ++shorter) {
      found.value = longest_sequence(tight, space, question, known, watch);
      if (!found.value)
        known = shorter < 2 ? known_layouts(base, space, question, known.from, watch) : KnownLayouts{};
      found.stopped = stops(watch);
    }
    if (!found.value && !found.stopped) {
      known = {};
      found = find(tight, space, question, global_batches, watch);
    }
    // A microbatch or a time limit needs other strategies than the leanest.
    if (!found.value || found.stopped || question.within || question.run || i == most_settling_tries)
      return found;
    const Searched at = at_value(base, space, question.extreme, *found.value);
    Request leaner = at.base;
    leaner.system.memory = tight.system.memory;
    const std::optional<Strategy> fitting = fitting_in(leaner, at.space, known, watch);
    found.stopped = stops(watch);
    if (!fitting) return found;
    const Candidate candidate = settled_candidate(at.base, {.strategy = *fitting});
    if (candidate.verdict == Verdict::fits) {
      if (too_much) found.value = furthest_held(base, space, question, known, *found.value, *too_much, watch);
      found.stopped = stops(watch);
      return found;
    }
    if (question.extreme != Extreme::min_devices) too_much = found.value;
    const Bytes most = tight.system.memory - excess(base, candidate);
    if (most <= Bytes(0)) return found;
    tight.system.memory = most;
    if (i == 0 && question.extreme == Extreme::max_sequence && global_batches.size() == 1)
      known = known_layouts(base, space, question, *found.value, watch);
  }
}

}  // namespace

Found find_held(const Request& base, const Space& space, const Question& question, const Watch& watch) {
  return find_held(base, space, question, std::array{base.workload.global_batch}, watch);
}

Found find_held(const Request& base, const Space& space, const Question& question,
                std::span<const std::int64_t> global_batches, const Watch& watch) {
  Found found = find_held_in(base, space, question, global_batches, watch);
  if (found.value || found.stopped || space.breadth != Breadth::wide) return found;
  Space beyond = space;
  beyond.tensor_parallel = wide_tensor_parallel_of(base, space);
  if (beyond.tensor_parallel == tensor_parallel_of(base, space)) return found;
  Found wider = find_held_in(base, beyond, question, global_batches, watch);
  return wider.value || wider.stopped ? wider : found;
}

}  // namespace headroom

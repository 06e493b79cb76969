// Whether anything in a space fits with the margin of its request, without ranking what does: the question that inverse questions (find.hpp) ask again
// and again. It looks only at the part of the space that needs least memory, which tests compare with the whole.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "headroom/plan/composer.hpp"
#include "headroom/search/layers_by_memory.hpp"

namespace headroom {

// The part of a space that fits wherever anything in the space does. Where the space leaves the choice, memory is never
// saved by a larger microbatch (as many sequences are alive, in fewer pieces), by an interleaved or a GPipe schedule
// over 1F1B (more passes are alive), by whole optimizer state, or by recomputing only some layers of a stage.
Space leanest(const Space& space);

// What all devices together hold of weights, gradients and optimizer state, however they share it, is no less.
Bytes least_state(const Request& base);

// The fewest devices whose memory holds that, and that compute an iteration `within` that time at their full peak, in some
// precision of the space.
std::int64_t devices_lower_bound(const Request& base, const Space& space, std::optional<Seconds> within);

// Answers for one model, system and workload; remembers what layers keep and cost from one space to the next.
class Feasibility {
 public:
  // Keeps a reference.
  explicit Feasibility(const Request& base) : base_(base), composer_(base) {}

  bool fits(const Space& space) { return fitting_layout(space).has_value(); }
  // The first layout of the space in which something fits.
  std::optional<Strategy> fitting_layout(const Space& space);
  // The strategy of that layout that needs least.
  std::optional<Strategy> fitting_strategy(const Space& space);
  // All of them.
  std::vector<Strategy> fitting_layouts(const Space& space);
  // Those of some layouts of the space that are legal and in which something fits.
  std::vector<Strategy> fitting_of(const Space& space, std::span<const Strategy> layouts);

  // Whether some strategy that fits takes no longer. Expects a system whose performance is known.
  bool fits_within(const Space& space, Seconds most);

 private:
  bool fits(const Strategy& strategy) {
    return verdict_of(base_, composer_.peak(strategy).bytes) == Verdict::fits;
  }
  bool fits(const Strategy& layout, const Space& lean, LayersByMemory& by_memory);
  bool fits_within(const Strategy& layout, const Space& space, LayersByMemory& by_memory, Seconds most);

  const Request& base_;
  Composer composer_;
};

}  // namespace headroom

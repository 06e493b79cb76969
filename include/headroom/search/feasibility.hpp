// Tells whether any strategy of a space fits with the request's margin, without ranking the strategies.
// Inverse questions (find.hpp) ask this again and again. Only the part of the space that needs least memory
// is examined; tests compare the answers with those for the whole space.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "headroom/core/watch.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/layers_by_memory.hpp"

namespace headroom {

// Returns the part of a space in which something fits whenever anything in the space fits. Where the space
// leaves the choice, none of these saves memory, with two exceptions: a larger microbatch (as many sequences are in flight,
// in fewer pieces), an interleaved or GPipe schedule instead of 1F1B (more passes are in flight), an
// unsharded optimizer, gathered weights that stay, or recomputing only some layers of a stage. The
// exceptions: with ZeRO 2 under a pipeline (reduces_by_group), virtual stages may save memory, so all
// schedules stay. On stacks that free gradients (grows_gradients), a single large microbatch may save memory,
// so all sizes stay.
Space leanest(const Request& base, const Space& space);

// Returns a lower bound for the weights, gradients and optimizer state on all GPUs together, however they are
// sharded.
Bytes least_state(const Request& base);

// Returns the fewest GPUs that have memory for least_state() and can compute an iteration `within` that time.
// The GPUs are assumed to run at full peak, in some precision of the space.
std::int64_t devices_lower_bound(const Request& base, const Space& space, std::optional<Seconds> within);

// Answers questions about one model, system and workload. Caches memory and cost of layers from one space to
// the next.
class Feasibility {
 public:
  // Keeps a reference to `base`. Once the watch stops it, nothing more is found to fit.
  explicit Feasibility(const Request& base, Watch watch = {})
      : base_(base), watch_(std::move(watch)), composer_(base) {}

  bool fits(const Space& space) { return fitting_layout(space).has_value(); }
  // Returns the first layout of the space that has a strategy that fits.
  std::optional<Strategy> fitting_layout(const Space& space);
  // Returns the strategy of the first fitting layout that needs the least memory.
  std::optional<Strategy> fitting_strategy(const Space& space);
  // Returns the same among the given layouts. Skips those that the space or the request does not allow.
  std::optional<Strategy> fitting_strategy(const Space& space, std::span<const Strategy> layouts);
  // Returns all layouts of the space that have a strategy that fits.
  std::vector<Strategy> fitting_layouts(const Space& space);
  // Returns the given layouts that are legal and have a strategy that fits.
  std::vector<Strategy> fitting_of(const Space& space, std::span<const Strategy> layouts);

  // Returns whether some strategy that fits takes at most `most` per iteration. Expects a system whose
  // performance is known.
  bool fits_within(const Space& space, Seconds most);

 private:
  [[nodiscard]] bool fits(const Layout& layout, const Strategy& strategy) const {
    return verdict_of(base_, layout.peak(strategy).bytes) == Verdict::fits;
  }
  // Returns the legal recomputations that may fit as they are or with layers placed by memory.
  [[nodiscard]] std::vector<Recomputation> hopeful(const Layout& balanced, Strategy strategy,
                                                   const Space& space, LayersByMemory& by_memory) const;
  bool fits(const Strategy& layout, const Space& lean, LayersByMemory& by_memory);
  std::optional<Strategy> leanest_strategy(const Strategy& layout, const Space& space);
  bool fits_within(const Strategy& layout, const Space& space, LayersByMemory& by_memory, Seconds most);

  // Returns whether a layout of the space satisfies `enough`. Stops at the first one that does.
  template <class Enough>
  bool any_layout(const Space& space, Enough enough) const;

  const Request& base_;
  Watch watch_;
  Composer composer_;
};

}  // namespace headroom

// The recomputation frontier of a layout: the least iteration time for every memory budget, over all choices
// of what layers recompute.
//
// Two families are searched in full:
//   uniform  The first K layers of every virtual stage recompute one set of ops; the other layers save
//            everything. These are the choices of --recompute-ops and --recompute-layers, over all 2^ops sets
//            and every K.
//   staged   Every pipeline rank has its own mix (stage_mixes.hpp), equal in all of its virtual stages. A
//            rank that recomputes less never makes an iteration longer, so each rank takes the fastest mix
//            within its memory.
//
// A third calls evaluate() for every set:
//   windowed All layers recompute one set, but each rank exempts as many in-flight microbatches as its memory
//            allows [K22 appendix C]: --recompute-window
//
// Recomputation hides part of the time of weight gathers and gradient reductions that run unit by unit.
// Separate weight-gradient passes hold what they read until they run. Both are counted as evaluate() counts
// them. A rank whose passes gather or reduce unit by unit has only the mixes of the uniform family. Two ranks
// that hold the same virtual stages recompute alike.
//
// A set that another set dominates (layer_front.hpp) cannot change an answer and is left out. If the chunks
// of a rank differ in their layers or hold several kinds of layers, the first K layers of each chunk
// recompute one set and the others nothing, as in the uniform family. For a model with several kinds of
// layers, a "set" is one set for each kind. The combinations tried are those of kind_choices.hpp: good ones,
// not all.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "headroom/core/watch.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/kind_choices.hpp"
#include "headroom/search/stage_mixes.hpp"

namespace headroom {

// A recomputation for all stages, with the figures of evaluate().
struct FrontierPoint {
  Recomputation recompute;
  KindChoices layers;  // of the layers that recompute, by kind
  Bytes peak;          // of the peak rank
  std::size_t peak_rank = 0;
  Seconds iteration;
  double mfu = 0;
  friend bool operator==(const FrontierPoint&, const FrontierPoint&) = default;
};

struct StagedRank {
  std::vector<MixRun> longest_chunk;
  Bytes total;        // all memory of the rank at its peak
  Seconds recompute;  // of one microbatch, in all chunks of the rank
  friend bool operator==(const StagedRank&, const StagedRank&) = default;
};

struct StagedPoint {
  Bytes budget;  // of each GPU
  std::vector<StagedRank> ranks;
  Bytes peak;
  std::size_t peak_rank = 0;
  Seconds iteration;
  double mfu = 0;
  friend bool operator==(const StagedPoint&, const StagedPoint&) = default;
};

// Answers questions about the layout of a request; the request's own recomputation is ignored. Throws
// InputError if the layout is not legal or the system's performance is not known.
class Frontier {
 public:
  explicit Frontier(Request request);
  ~Frontier();
  Frontier(Frontier&&) noexcept;
  Frontier& operator=(Frontier&&) noexcept;
  Frontier(const Frontier&) = delete;
  Frontier& operator=(const Frontier&) = delete;

  [[nodiscard]] const Request& request() const;
  // Returns the model's layers, the kinds of transformer layers first.
  [[nodiscard]] const ModelLayers& layers() const;
  // Returns the undominated sets of each kind of layer, starting with the set that saves everything.
  [[nodiscard]] const std::vector<LayerFront>& layer_fronts() const;
  // Returns the choices tried for all layers: the sets of the only kind, or combinations of the sets of
  // several kinds.
  [[nodiscard]] const std::vector<KindChoices>& choices() const;

  // Returns the point of any recomputation, on the front or not.
  [[nodiscard]] FrontierPoint point(const Recomputation& recompute) const;

  // Returns the uniform front from the most memory and least time on. Each point needs less memory and more
  // time than the one before. Among points equal in both, the front has the one with the fewest ops and
  // layers. If the watch stops it, returns the front of the choices that it came to, at least of the first.
  [[nodiscard]] std::vector<FrontierPoint> uniform(const Watch& watch = {}) const;

  // Returns the fastest windowed point on GPUs with this memory, or nothing if none fits. Windows leave the
  // request's margin free. Evaluates every one of choices(), milliseconds each, until the watch stops it.
  [[nodiscard]] std::optional<FrontierPoint> windowed(Bytes memory, const Watch& watch = {}) const;

  // Returns the point of least time within a budget for every GPU, or nothing if even the least memory does
  // not fit.
  [[nodiscard]] std::optional<StagedPoint> staged(Bytes budget) const;

 private:
  struct Parts;
  class Uniform;
  std::unique_ptr<Parts> parts_;
};

// Returns the fastest point of a uniform front within a budget, or null if none is.
const FrontierPoint* within(const std::vector<FrontierPoint>& front, Bytes budget);

}  // namespace headroom

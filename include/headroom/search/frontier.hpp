// The recomputation frontier of a layout: for every budget of memory the least time an iteration takes, over what its
// layers can recompute.
//
// Two families are searched in full:
//   uniform  the first K layers of every virtual stage recompute one set of ops, the rest keep everything: what
//            --recompute-ops and --recompute-layers can ask for, over all 2^ops sets and every K
//   staged   every pipeline rank has a mix of its own (stage_mixes.hpp), the same in all of its virtual stages. A rank
//            that recomputes less never makes an iteration longer, so that each takes the quickest mix within its
//            memory
//
// A third rests on evaluate() for every set:
//   windowed all layers recompute one set, but each rank exempts as many in-flight microbatches as its memory allows
//            [K22 appendix C]: --recompute-window
//
// Where passes gather weights or reduce gradients unit by unit, a recomputation hides some of that, and where weights have passes of
// their own they wait with what those read: both are counted as evaluate() counts them. A rank whose passes exchange units has the
// mixes of the uniform family alone. Two ranks that hold the same virtual stages recompute alike.
//
// Sets that another one is no worse than (layer_front.hpp) cannot change an answer and are left out. Where the chunks
// of a rank differ in their layers or hold several kinds of them, the first K layers of each recompute one set and
// the rest nothing, as in the uniform family. Of a model with several kinds of layers a "set" is one for each kind,
// and the combinations that are tried are those of kind_choices.hpp: good ones, not all.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "headroom/plan/plan.hpp"
#include "headroom/search/kind_choices.hpp"
#include "headroom/search/stage_mixes.hpp"

namespace headroom {

// A recomputation that holds for all stages, as evaluate() has it.
struct FrontierPoint {
  Recomputation recompute;
  KindChoices layers;  // of those that recompute, by kind
  Bytes peak;          // of the peak rank
  std::size_t peak_rank = 0;
  Seconds iteration;
  double mfu = 0;
  friend bool operator==(const FrontierPoint&, const FrontierPoint&) = default;
};

struct StagedRank {
  std::vector<MixRun> longest_chunk;
  Bytes total;        // everything that the rank holds at its peak
  Seconds recompute;  // of one microbatch, in all of its chunks
  friend bool operator==(const StagedRank&, const StagedRank&) = default;
};

struct StagedPoint {
  Bytes budget;  // of each device
  std::vector<StagedRank> ranks;
  Bytes peak;
  std::size_t peak_rank = 0;
  Seconds iteration;
  double mfu = 0;
  friend bool operator==(const StagedPoint&, const StagedPoint&) = default;
};

// Answers questions about the layout of a request, whose own recomputation plays no part. Throws InputError where the
// layout is not legal or the system's performance not known.
class Frontier {
 public:
  explicit Frontier(Request request);
  ~Frontier();
  Frontier(Frontier&&) noexcept;
  Frontier& operator=(Frontier&&) noexcept;
  Frontier(const Frontier&) = delete;
  Frontier& operator=(const Frontier&) = delete;

  [[nodiscard]] const Request& request() const;
  // The kinds of layers stand first.
  [[nodiscard]] const ModelLayers& layers() const;
  // Of each kind the sets that a layer can do best with, from the one that keeps everything on.
  [[nodiscard]] const std::vector<LayerFront>& layer_fronts() const;
  // What is tried in all layers: the sets of the only kind, or combinations of several kinds' sets.
  [[nodiscard]] const std::vector<KindChoices>& choices() const;

  // Whatever it recomputes, also if it is not on the front.
  [[nodiscard]] FrontierPoint point(const Recomputation& recompute) const;

  // The uniform front, from the most memory and least time on: each needs less memory and more time than the one
  // before. Of points that are alike in both, the one of the fewest ops and layers.
  [[nodiscard]] std::vector<FrontierPoint> uniform() const;

  // The fastest windowed one on devices of so much memory, of which windows leave a part free (the margin of the
  // request); nothing where none fits. Evaluates every one of choices(): milliseconds each.
  [[nodiscard]] std::optional<FrontierPoint> windowed(Bytes memory) const;

  // The least time within a budget for every device; nothing where even the least does not fit.
  [[nodiscard]] std::optional<StagedPoint> staged(Bytes budget) const;

 private:
  struct Parts;
  class Uniform;
  std::unique_ptr<Parts> parts_;
};

// The fastest of a uniform front within a budget.
const FrontierPoint* within(const std::vector<FrontierPoint>& front, Bytes budget);

}  // namespace headroom

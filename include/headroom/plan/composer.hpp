// The composer evaluates strategies for a model on a system. It is the only way from a strategy to its memory
// and time: evaluate(), the search, the recomputation frontier, remedies and improvements all query it. The
// composer computes each part once for all strategies that share the part's inputs, and assembles the parts
// for each strategy:
//
//   sharding                   what a layer saves and computes, in symbols
//   t, b, sequence parallelism the layer's ops priced; with its recomputation, its bytes and its cost
//   layout (with p, m, d)      virtual stages, ranks, links, forward and backward times, end of the iteration
//   recomputation              bytes of the ranks, recompute times, the makespan
//   data sharding              state of the ranks; the sums
//
// A short query (`peak` and `iteration` of a layout) and the full evaluation (`evaluate`) give the same
// numbers to the last bit.
#pragma once

#include <memory>
#include <span>

#include "headroom/plan/layout.hpp"

namespace headroom {

class Composer {
 public:
  // Keeps a reference to the request; ignores the request's strategy.
  explicit Composer(const Request& base);
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;
  ~Composer();

  // Returns the full evaluation of a strategy. Throws InputError with every broken rule if the strategy is
  // not legal.
  Evaluation evaluate(const Strategy& strategy);

  // Returns the layout of a legal strategy, for strategies that share it. The composer and `recomputations`
  // must outlive it; several of these are timed together where that takes little longer than timing one.
  [[nodiscard]] Layout layout(const Strategy& strategy, std::span<const Recomputation> recomputations = {});

  // Returns the op tables that the composer has built, for rules that read them.
  KnownLayers& known_layers();

 private:
  std::unique_ptr<ComposedParts> parts_;
};

}  // namespace headroom

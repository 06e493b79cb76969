// Recomputation choices for a layer: sets of ops of its table, with the bytes that the layer saves, the bytes
// that recomputation makes and the cost of recomputing; and the sets that no other set dominates.
//
// A set drops all outputs of its ops (RecomputedOps::discarded). Saving some of the outputs would take the
// same recomputation and more memory. These sets are therefore the best among all ways to save, drop and
// recompute the tensors of the table. One such way is K22's checkpoint of core attention, which saves its
// output.
#pragma once

#include <vector>

#include "headroom/memory/stage.hpp"
#include "headroom/time/layer_cost.hpp"

namespace headroom {

// Ops that a layer recomputes, with the resulting bytes and cost, for one microbatch on one rank.
struct LayerChoice {
  OpSet ops = 0;
  LayerActivations bytes;
  PassCost recompute;
  friend bool operator==(const LayerChoice&, const LayerChoice&) = default;
};

// Recomputation of the layers of each kind, in the order of ModelLayers::kinds.
using KindChoices = std::vector<LayerChoice>;

// Returns whether x exceeds y in nothing that peak memory or iteration time grows with: saved bytes,
// recomputed bytes, GPU time and launch time of the CPU.
bool no_worse(const LayerChoice& x, const LayerChoice& y);

// Evaluates sets of ops for a kind of layer on one rank. Keeps references to the table and its prices.
class LayerSets {
 public:
  LayerSets(const OpTable& table, const PricedTable& prices, const Sharding& sharding,
            const Bindings& letters, Detail detail);

  [[nodiscard]] std::size_t ops() const { return table_.ops().size(); }
  [[nodiscard]] LayerChoice choice(OpSet ops) const;

 private:
  friend class LayerFrontSearch;

  // Bytes of each value that stored_tensors() lists, computed once.
  struct Sizes {
    Bytes shared;  // sharded as the table says
    Bytes whole;   // unsharded, on every rank
  };
  void add_bytes(LayerActivations& sum, std::span<const Storable> values, std::span<const Sizes> sizes,
                 const RecomputedOps& recomputed) const;

  const OpTable& table_;
  const PricedTable& prices_;
  Sharding sharding_;
  Detail detail_;
  std::vector<Storable> values_;
  std::vector<Sizes> sizes_;
};

struct LayerFront {
  std::vector<LayerChoice> choices;
  std::size_t unbeaten = 0;  // number of undominated sets that `choices` stand for
  double tolerance = 0;
};

// Largest number of sets in a front, since stages mix every two of them. Layers with 15 to 17 ops have 50 to
// 300.
inline constexpr std::size_t most_choices = 2048;
// Largest number of partial sets during the search of a front. Layers of 28 ops with experts and latent
// attention need 20,000.
inline constexpr std::size_t most_partial_choices = 65'536;

// Returns the sets that no other set dominates; among equal sets, the first by bits. The first set saves
// everything, and none saves more than the one before it.
//
// The search goes through the table op by op. Among partial sets that do not differ for the rest of the
// table, it keeps those that no other one dominates. It is exact for any number of ops while there are at
// most most_partial_choices partial sets, and most_choices in the end. Beyond that it leaves out sets that
// differ little from one that it has, and `tolerance` says how little. For every set, the front then has one
// that exceeds it by at most this fraction: of all bytes that the layer saves (in saved and in recomputed
// bytes), and of its forward pass (in GPU time and in CPU time).
LayerFront layer_front(const LayerSets& sets);

// Returns the choices that no other one dominates, in the order of layer_front().
std::vector<LayerChoice> unbeaten(std::vector<LayerChoice> choices);

}  // namespace headroom

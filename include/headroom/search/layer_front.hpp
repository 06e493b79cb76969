// What a layer can recompute: sets of ops of its table, with the bytes that it keeps, those that its recomputation
// makes again, and what the recomputation costs; and of all sets those that no other one beats.
//
// A set drops all that its ops make (RecomputedOps::discarded). To keep some of it would take the same
// recomputation and more memory, so that these sets are the best among all ways to keep, drop and recompute what the
// table holds: K22's checkpoint of core attention, which keeps its output, is one of those ways.
#pragma once

#include <vector>

#include "headroom/memory/stage.hpp"
#include "headroom/time/layer_cost.hpp"

namespace headroom {

// What a layer recomputes and what that makes of it, for one microbatch on one rank.
struct LayerChoice {
  OpSet ops = 0;
  LayerActivations bytes;
  PassCost recompute;
  friend bool operator==(const LayerChoice&, const LayerChoice&) = default;
};

// What the layers of each kind recompute, in the order of ModelLayers::kinds.
using KindChoices = std::vector<LayerChoice>;

// No more of anything that a peak of memory or an iteration's time grows with: bytes kept, bytes made again, device
// time, time of the host.
bool no_worse(const LayerChoice& x, const LayerChoice& y);

// A kind of layer on one rank, asked for sets of its ops. Keeps references to the table and its prices.
class LayerSets {
 public:
  LayerSets(const OpTable& table, const PricedTable& prices, const Sharding& sharding,
            const Bindings& letters, Detail detail);

  [[nodiscard]] std::size_t ops() const { return table_.ops().size(); }
  [[nodiscard]] LayerChoice choice(OpSet ops) const;

 private:
  friend class LayerFrontSearch;

  // What stored_tensors() makes lines of, with the bytes of every value, once.
  struct Sizes {
    Bytes shared;  // as the table places it
    Bytes whole;   // on every rank
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
  std::size_t unbeaten = 0;  // sets that `choices` stand for
  double tolerance = 0;
};

// A front has at most so many sets, since stages mix every two of them. Those of layers with 15 to 17 ops have 50 to 300.
inline constexpr std::size_t most_choices = 2048;
// While it is searched, so many partial sets stand beside each other at most. Layers of 28 ops with experts and latent attention
// need 20,000.
inline constexpr std::size_t most_partial_choices = 65'536;

// The sets that no other is no worse than; of alike ones, the first by bits. The first keeps everything, and none
// keeps more than the one before it.
//
// The search goes through the table op by op and keeps, of partial sets between which the rest of the table sees no
// difference, those that no other one beats: it is exact, whatever the number of ops, as long as at most
// most_partial_choices of them stand beside each other, and most_choices in the end. Beyond that it leaves out sets that differ
// little from one it has, and `tolerance` says how little: for every set there is one in the front that exceeds it by at most this
// part of all that the layer keeps (in bytes kept, and in bytes made again) and of its forward pass (in time of the device, and of
// the host).
LayerFront layer_front(const LayerSets& sets);

// Of choices, those that no other is no worse than, in the order above.
std::vector<LayerChoice> unbeaten(std::vector<LayerChoice> choices);

}  // namespace headroom

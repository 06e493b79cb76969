// Data that all questions about a frontier share: the parts of its layout, counted and priced once, and the
// options of each rank.
#pragma once

#include <optional>
#include <vector>

#include "headroom/plan/composer.hpp"
#include "headroom/search/frontier.hpp"

namespace headroom {

// A mix of a rank, with all memory of the rank at its peak.
struct RankOption {
  IndexedMix mix;
  Bytes total;
};

struct FrontierRank {
  std::vector<StagePlace> chunks;
  std::int64_t layers = 0;          // of the longest chunk
  std::optional<std::size_t> kind;  // of all layers of chunks that are as long, if they have one
  std::vector<RankOption> options;  // from the quickest on, ever less memory
};

struct Frontier::Parts {
  explicit Parts(Request asked);

  // Returns all memory of a rank at its peak, for these activations of its virtual stages.
  [[nodiscard]] Bytes total_of(std::int64_t rank, const std::vector<StageActivations>& chunks) const;

  // Return activations and cost of a virtual stage with this mix.
  [[nodiscard]] StageActivations activations_of(const LayerMix& mix, const StagePlace& place) const;
  [[nodiscard]] StageCost cost_of(const LayerMix& mix, const StagePlace& place) const;
  // Returns how much longer the backward pass takes than without recomputation. Collectives may be hidden
  // beneath it.
  [[nodiscard]] Seconds longer(const LayerMix& mix, const StagePlace& place) const;

  // Returns the choices for the mixes of a rank: all sets of a kind if its layers have one kind.
  [[nodiscard]] const std::vector<KindChoices>& choices_of(const FrontierRank& rank) const {
    return rank.kind ? of_a_kind[*rank.kind] : choices;
  }

  // Returns the ranks with the mixes that each can have, which take most of the time: found when first asked for.
  const std::vector<FrontierRank>& ranks_with_options();

  Request request;  // without recomputation
  Composer composer;
  Layout layout;
  std::int64_t pipeline_ranks = 1;
  std::vector<StagePlace> places;  // of all virtual stages
  const ModelActivations* kept = nullptr;
  const ModelCost* cost = nullptr;
  std::vector<LayerFront> fronts;                   // by kind of layer
  std::vector<KindChoices> choices;                 // combined()
  std::vector<std::vector<KindChoices>> of_a_kind;  // alone(), by kind
  std::vector<FrontierRank> ranks;

 private:
  void set_backward_peaks(LayerFront& front, std::size_t kind);
  [[nodiscard]] std::vector<IndexedMix> mixes_of(const FrontierRank& rank) const;
  // Returns mixes with a set in the first layers of each virtual stage and nothing recomputed in the rest.
  [[nodiscard]] std::vector<IndexedMix> uniform_mixes_of(const FrontierRank& rank) const;
  [[nodiscard]] std::vector<RankOption> options_of(std::int64_t number,
                                                   const std::vector<IndexedMix>& mixes) const;
};

// Returns the first virtual stage of a rank with the most layers.
const StagePlace& longest(const FrontierRank& rank);

}  // namespace headroom

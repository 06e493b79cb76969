// What a frontier's questions share: the parts of its layout, counted and priced once, and what each rank can do.
#pragma once

#include <vector>

#include "headroom/plan/composer.hpp"
#include "headroom/search/frontier.hpp"

namespace headroom {

// A mix of a rank, and everything that the rank then holds at its peak.
struct RankOption {
  IndexedMix mix;
  Bytes total;
};

struct FrontierRank {
  std::vector<StagePlace> chunks;
  std::int64_t layers = 0;          // of the longest chunk
  std::vector<RankOption> options;  // from the quickest on, ever less memory
};

struct Frontier::Parts {
  explicit Parts(Request asked);

  // All that a rank holds at its peak, whose stage chunks keep so much.
  [[nodiscard]] Bytes total_of(std::int64_t rank, const std::vector<StageActivations>& chunks) const;

  Request request;  // without recomputation
  Composer composer;
  OpTable table;
  std::int64_t pipeline_ranks = 1;
  std::vector<StagePlace> places;  // of all stage chunks
  const ModelActivations* kept = nullptr;
  const ModelCost* cost = nullptr;
  std::vector<LayerChoice> choices;
  double tolerance = 0;
  std::vector<FrontierRank> ranks;

 private:
  [[nodiscard]] std::vector<IndexedMix> mixes_of(const FrontierRank& rank) const;
  [[nodiscard]] std::vector<IndexedMix> mixes_of_uneven(const FrontierRank& rank) const;
  [[nodiscard]] std::vector<RankOption> options_of(std::int64_t number,
                                                   const std::vector<IndexedMix>& mixes) const;
};

// A mix in a chunk that may have fewer layers than the longest of its rank.
LayerMix cut_to(const LayerMix& mix, std::int64_t layers);

}  // namespace headroom

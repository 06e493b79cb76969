// What a frontier's questions share: the parts of its layout, counted and priced once, and what each rank can do.
#pragma once

#include <vector>

#include "headroom/search/frontier.hpp"

namespace headroom {

// A mix of a rank, and everything that the rank then holds at its peak.
struct RankOption {
  IndexedMix mix;
  Bytes total;
};

struct FrontierRank {
  std::vector<StagePlace> chunks;
  std::int64_t layers = 0;  // of the longest chunk
  ModelState state;
  std::vector<RankOption> options;  // from the quickest on, ever less memory
};

struct Frontier::Parts {
  explicit Parts(Request asked);

  [[nodiscard]] Bytes total_of(std::int64_t rank, const std::vector<StageActivations>& chunks) const;
  [[nodiscard]] PassTimes times_of(const StageCost& stage) const;
  [[nodiscard]] Seconds iteration(const std::vector<StageCost>& stages) const;
  [[nodiscard]] double mfu(Seconds iteration) const;

  Request request;  // without recomputation
  OpTable table;
  ScheduleShape shape;
  std::vector<StagePlace> places;
  ModelActivations kept;
  ModelCost cost;
  Flops model_flops;
  Bytes reserved_bytes;
  std::vector<LayerChoice> choices;
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

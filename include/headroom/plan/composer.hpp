// The composer is a model on a system, asked for strategies. It is the one way from a strategy to its memory and its
// time: evaluate(), the search, the recomputation frontier, remedies and improvements are questions to it. It works out
// each part once, for all strategies that share what the part depends on, and puts the parts together for each of them:
//
//   sharding                   what a layer keeps and computes, in symbols
//   t, b, sequence parallelism its ops priced; with what it recomputes, its bytes and its cost
//   layout (with p, m, d)      virtual stages, ranks, links, forward and backward times, the end of an iteration
//   recomputation              bytes of the ranks, recompute times, the makespan
//   data sharding              state of the ranks; the sums
//
// A short question (`peak`, `iteration`) and the whole account (`evaluate`) have the same numbers to the last bit.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "headroom/memory/units.hpp"
#include "headroom/plan/layout_times.hpp"

namespace headroom {

struct RankPeak {
  std::size_t rank = 0;  // of those that hold the most, the first
  Bytes bytes;
  bool of_host = false;  // that the host of some rank lacks memory, which counts as if the device lacked it
  friend bool operator==(const RankPeak&, const RankPeak&) = default;
};

class Composer {
 public:
  // Keeps a reference. The request's strategy plays no part.
  explicit Composer(const Request& base);
  Composer(const Composer&) = delete;  // its parts refer to each other
  Composer& operator=(const Composer&) = delete;

  // The whole account of a strategy. Throws InputError, with every rule that is broken, where it is not legal.
  Evaluation evaluate(const Strategy& strategy);

  // All strategies given to the questions below lie in the layout last set, and are legal. Recomputation may differ, and
  // so may data sharding that leaves the passes as they are (same_passes). Of the recomputations, which must outlive the questions, some are timed
  // together where that takes little longer than one.
  void set_layout(const Strategy& layout, std::span<const Recomputation> recomputations = {});

  RankPeak peak(const Strategy& strategy);
  // What a rank would hold at its peak if so many layers lay on it, of a model whose layers are of one kind. Expects one
  // virtual stage a rank, no window, and no passes for weights.
  Bytes rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers);

  // Of here on every question expects a system whose performance is known.
  Seconds iteration(const Strategy& strategy);
  // At most that, and in closed form for every schedule.
  Seconds least_iteration(const Strategy& strategy);
  [[nodiscard]] double mfu(Seconds iteration);

  // The parts of the layout last set, for those who put virtual stages together that no Recomputation names.
  [[nodiscard]] const ScheduleShape& shape() const { return shape_; }
  LayerPrices& layers() { return layers_; }  // what its layers keep and cost
  [[nodiscard]] PassTimes times_of(const StageCost& stage) const { return times_.times_of(stage); }
  // What passes exchange with other ranks unit by unit; null where they do not.
  const ModelExchanges* exchanges() { return times_.exchanges(); }
  // Adds what passes have whole of divided weights and gradients, and what passes for weights read, to what the layers of a virtual
  // stage keep, of which the first `apart.layers` keep something else than the rest.
  void complete(StageActivations& stage, const StagePlace& place, const Recomputation& apart) {
    if (units_) set_units(stage, *units_, place, apart);
    if (has_weight_passes(shape_)) stage = with_weight_passes(stage, layers_.deferred(), place, apart);
  }
  // All that a rank holds at its peak, whose virtual stages do so.
  [[nodiscard]] Bytes rank_total(std::int64_t rank, std::span<const PassActivations> passes) const;
  // Of virtual stages that cost so much, in the order of the model.
  Seconds iteration(std::span<const StageCost> stages);

 private:
  // The first of the ranks that hold the same virtual stages: none of them is fuller [memory/rank.hpp]. With passes for
  // weights, each rank.
  struct RankKind {
    std::int64_t rank = 0;
    std::int64_t layers = 0;
    KindCounts held;                  // of each kind of layer
    ChunkGroups groups;               // virtual stages of the same place do the same
    std::vector<std::size_t> stages;  // of each group, among the distinct ones
    Parameters parameters;
    MatrixList matrices;                                        // of them, where the optimizer steps matrices
    std::array<Bytes, spellings<DataSharding>.size()> state;    // by data sharding
    std::array<Bytes, spellings<DataSharding>.size()> on_host;  // likewise, in the memory of the host
    Bytes activations;                                          // at their peak
    Bytes activations_on_host;                                  // likewise
    Bytes dummy_gradients;
    const std::vector<LiveMoment>* moments = nullptr;  // once asked for, where virtual stages differ
  };

  using MomentsKey = std::tuple<ScheduleKind, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                std::int64_t, ChunkGroups>;

  void find_stages();
  void find_rank_kinds();
  void find_states();
  // Of each weight of products of fewer than 16 bits; two where nothing is known of the device.
  [[nodiscard]] int weight_copies() const;
  // Of a device that has so many bytes on its host. What the host lacks counts as if the device lacked it, so that nothing fits
  // that the host cannot hold.
  [[nodiscard]] RankPeak limited_by_host(std::size_t rank, Bytes bytes, Bytes on_host) const;
  [[nodiscard]] Bytes kept_by_stack(const RankKind& kind) const;  // and by the system's reserves
  // Which of the distinct stages it is.
  [[nodiscard]] std::size_t stage(std::int64_t rank, std::int64_t chunk) const;

  void fill_activations(const Recomputation& recompute);
  const std::vector<LiveMoment>& moments_of(const ChunkGroups& groups, std::int64_t rank);
  RankActivations activations_of(RankKind& kind, std::int64_t rank);
  [[nodiscard]] std::vector<PassActivations> of_chunks(const RankKind& kind) const;
  [[nodiscard]] Bytes activations_on_host(const RankKind& kind, std::int64_t rank) const;
  std::vector<StageActivations> stage_activations_of(const Recomputation& recompute);
  const std::vector<RankMemory>& ranks_of(const Strategy& strategy);

  IterationTime iteration_time(const Strategy& strategy);
  Timing timing_of(const Strategy& strategy);

  const Request& base_;
  std::optional<Flops> model_flops_;  // of an iteration, and the rate that MFU is against
  LayerPrices layers_;
  LayoutTimes times_;
  std::map<MomentsKey, std::vector<LiveMoment>> moments_;

  Strategy layout_;
  std::int64_t devices_ = 1;
  Bytes reserved_;
  ScheduleShape shape_;
  LayoutStages stages_;
  std::vector<RankKind> kinds_;
  std::vector<std::size_t> kind_of_;  // by rank: which of them

  std::optional<ModelUnits> units_;           // where passes gather weights or reduce gradients
  std::optional<Recomputation> filled_;       // for which these are
  std::vector<PassActivations> activations_;  // of the distinct stages
  std::vector<PassActivations> groups_;       // of the groups of a rank
  StageActivations scratch_;
  StagePlace asked_place_;               // of a rank that was asked for with other layers than it has
  std::optional<Strategy> ranks_asked_;  // for whose ranks these are
  std::vector<RankMemory> ranks_;
};

}  // namespace headroom

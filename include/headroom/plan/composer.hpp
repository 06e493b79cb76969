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
// A short query (`peak`, `iteration`) and the full evaluation (`evaluate`) give the same numbers to the last
// bit.
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
  std::size_t rank = 0;  // first rank that holds the most
  Bytes bytes;
  bool of_host = false;  // the host of a rank lacks memory, counted as if the GPU lacked it
  friend bool operator==(const RankPeak&, const RankPeak&) = default;
};

class Composer {
 public:
  // Keeps a reference to the request; ignores the request's strategy.
  explicit Composer(const Request& base);
  Composer(const Composer&) = delete;  // its parts refer to each other
  Composer& operator=(const Composer&) = delete;

  // Returns the full evaluation of a strategy. Throws InputError with every broken rule if the strategy is
  // not legal.
  Evaluation evaluate(const Strategy& strategy);

  // Sets the layout for the queries below. They expect legal strategies in the layout last set. Recomputation
  // may differ, and so may data sharding that leaves the passes unchanged (same_passes). `recomputations`
  // must outlive the queries; several of them are timed together where that takes little longer than timing
  // one.
  void set_layout(const Strategy& layout, std::span<const Recomputation> recomputations = {});

  RankPeak peak(const Strategy& strategy);
  // Returns what a rank would hold at its peak with `layers` layers. Expects a model with one kind of layer,
  // one virtual stage per rank, no window, and no separate weight-gradient passes.
  Bytes rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers);
  // Returns what a rank would hold at its peak with these virtual stages, one for each of its chunks. Expects no
  // window.
  Bytes rank_total(const Strategy& strategy, std::int64_t rank, std::span<const StagePlace> chunks);

  // From here on, the system must have performance figures.
  Seconds iteration(const Strategy& strategy);
  // Returns a lower bound of iteration(), in closed form for every schedule.
  Seconds least_iteration(const Strategy& strategy);
  [[nodiscard]] double mfu(Seconds iteration);

  // Returns the op tables that the composer has built, for rules that read them.
  KnownLayers& known_layers() { return layers_.known_layers(); }

  // Parts of the layout last set, for callers that assemble virtual stages which no Recomputation names.
  [[nodiscard]] const ScheduleShape& shape() const { return shape_; }
  LayerPrices& layers() { return layers_; }  // what the layers save and cost
  [[nodiscard]] PassTimes times_of(const StageCost& stage) const { return times_.times_of(stage); }
  [[nodiscard]] double overlap_loss() const { return times_.overlap_loss(); }  // ScheduleTimes::overlap_loss
  // Returns the transfer times of ScheduleTimes::links.
  std::span<const Seconds> links() { return times_.links(); }
  // Returns what passes exchange with other ranks unit by unit, or null if they exchange nothing.
  const ModelExchanges* exchanges() { return times_.exchanges(); }
  // Adds two things to what the layers of a virtual stage save: unsharded weights and gradients that passes
  // hold, and what weight-gradient passes read. The stage's first `apart.layers` layers save something other
  // than the rest.
  void complete(StageActivations& stage, const StagePlace& place, const Recomputation& apart) {
    if (units_) set_units(stage, *units_, place, apart);
    if (has_weight_passes(shape_)) stage = with_weight_passes(stage, layers_.deferred(), place, apart);
  }
  // Returns all that a rank holds at its peak when its virtual stages save `passes`.
  [[nodiscard]] Bytes rank_total(std::int64_t rank, std::span<const PassActivations> passes) const;
  // Returns the iteration time for virtual stages of these costs, in the order of the model.
  Seconds iteration(std::span<const StageCost> stages);

 private:
  // First of the ranks that hold the same virtual stages: no other holds more [memory/rank.hpp]. With
  // separate weight-gradient passes, each rank is a kind of its own.
  struct RankKind {
    std::int64_t rank = 0;
    std::int64_t layers = 0;
    KindCounts held;                  // layers of each kind
    bool has_head = false;            // on one of its virtual stages
    ChunkGroups groups;               // virtual stages in the same place are alike
    std::vector<std::size_t> stages;  // of each group: index among the distinct stages
    Parameters parameters;
    MatrixList matrices;  // of `parameters`, if the optimizer steps matrices
    std::array<Bytes, spellings<DataSharding>.size()> state;    // by data sharding
    std::array<Bytes, spellings<DataSharding>.size()> on_host;  // state in host memory, by data sharding
    Bytes activations;                                          // at the peak
    Bytes activations_on_host;                                  // at the peak, in host memory
    Bytes dummy_gradients;
    const std::vector<LiveMoment>* moments = nullptr;  // set on demand, if virtual stages differ
  };

  using MomentsKey = std::tuple<ScheduleKind, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                std::int64_t, ChunkGroups>;

  void find_stages();
  void find_rank_kinds();
  void find_states();
  // Returns the number of copies of each weight of GEMMs in fewer than 16 bits; 2 if nothing is known of the
  // GPU.
  [[nodiscard]] int weight_copies() const;
  // Returns the logits of past microbatches that the last stage keeps beside what its passes save.
  [[nodiscard]] Bytes logits_kept(const Strategy& layout) const;
  // Returns the peak of a GPU that keeps `on_host` bytes on its host. Memory that the host lacks counts as if
  // the GPU lacked it, so that nothing fits that the host cannot hold.
  [[nodiscard]] RankPeak limited_by_host(std::size_t rank, Bytes bytes, Bytes on_host) const;
  [[nodiscard]] Bytes kept_by_stack(const RankKind& kind) const;  // non-torch memory included
  // Returns the index of the chunk's stage among the distinct ones.
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
  std::optional<Flops> model_flops_;  // of an iteration
  LayerPrices layers_;
  LayoutTimes times_;
  std::map<MomentsKey, std::vector<LiveMoment>> moments_;

  Strategy layout_;
  std::int64_t devices_ = 1;
  Bytes reserved_;
  Bytes workspaces_;
  Bytes kept_logits_;  // on the rank with the output layer (StackMemory::keeps_logits)
  ScheduleShape shape_;
  LayoutStages stages_;
  std::vector<RankKind> kinds_;
  std::vector<std::size_t> kind_of_;  // by rank: index into kinds_

  std::optional<ModelUnits> units_;           // if passes gather weights or reduce gradients
  std::optional<Recomputation> filled_;       // recomputation that activations_ are for
  std::vector<PassActivations> activations_;  // of the distinct stages
  std::vector<PassActivations> groups_;       // of the groups of a rank
  StageActivations scratch_;
  StagePlace asked_place_;               // of a rank queried with another number of layers than it has
  std::optional<Strategy> ranks_asked_;  // strategy that ranks_ are for
  std::vector<RankMemory> ranks_;
};

}  // namespace headroom

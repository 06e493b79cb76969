// Memory of the strategies of a layout: state and activations of its ranks. Layouts (plan/layout.hpp) query it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "headroom/memory/units.hpp"
#include "headroom/plan/layout.hpp"
#include "plan/composed_parts.hpp"

namespace headroom {

class LayoutMemory {
 public:
  // What the first rank of a kind holds.
  struct Holding {
    const RankKind* kind = nullptr;
    Parameters parameters;
    MatrixList matrices;  // of `parameters`, if the optimizer steps matrices
    std::array<Bytes, spellings<DataSharding>.size()> state;    // by data sharding
    std::array<Bytes, spellings<DataSharding>.size()> on_host;  // state in host memory, by data sharding
    Bytes dummy_gradients;
    Bytes activations;                                 // at the peak
    std::optional<Bytes> checkpoints;                  // set on demand: the least that passes in flight save
    Bytes activations_on_host;                         // at the peak, in host memory
    const std::vector<LiveMoment>* moments = nullptr;  // set on demand, if virtual stages differ
  };

  // Keeps references to its arguments.
  LayoutMemory(ComposedParts& shared, const Strategy& layout, const PricedLayers& layers,
               const PipelineOrder& order, const PlacedStages& placed);

  // All ranks wait for the rank that has the most parameters.
  [[nodiscard]] const Holding& with_most_parameters() const;

  // See Layout.
  RankPeak peak(const Strategy& strategy);
  Bytes least_peak(const Strategy& strategy);
  const std::vector<RankMemory>& ranks(const Strategy& strategy);
  Bytes rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers);
  Bytes least_rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers);
  Bytes rank_total(const Strategy& strategy, std::int64_t rank, std::span<const StagePlace> chunks);
  [[nodiscard]] Bytes rank_total(std::int64_t rank, std::span<const PassActivations> passes) const;
  void complete(StageActivations& stage, const StagePlace& place, const Recomputation& apart) const;

 private:
  void find_holdings();
  // Returns the number of copies of each weight of GEMMs in fewer than 16 bits; 2 if nothing is known of the
  // GPU.
  [[nodiscard]] int weight_copies() const;
  // Returns the logits of past microbatches that the last stage keeps beside what its passes save.
  [[nodiscard]] Bytes logits_kept() const;
  // Returns the peak of a GPU that keeps `on_host` bytes on its host. Memory that the host lacks counts as if
  // the GPU lacked it, so that nothing fits that the host cannot hold.
  [[nodiscard]] RankPeak limited_by_host(std::size_t rank, Bytes bytes, Bytes on_host) const;
  // Return what a rank keeps besides state and activations, non-torch memory included.
  [[nodiscard]] Bytes kept_by_stack(Bytes dummy_gradients, bool has_head) const;
  [[nodiscard]] Bytes kept_by_stack(const Holding& holding) const;
  [[nodiscard]] ModelState state_of(const Strategy& strategy, std::int64_t rank,
                                    const KindCounts& held) const;
  // Returns the only virtual stage of a rank if the rank held `layers` layers.
  const StagePlace& place_of(std::int64_t rank, std::int64_t layers);
  [[nodiscard]] const Holding& holding_of(std::int64_t rank) const;

  // Returns whether every pass in flight holds at least the input of every layer. Gradients that a backward
  // pass makes may take the place of activations, and adapters need not save inputs of frozen layers.
  [[nodiscard]] bool keeps_inputs(const Strategy& strategy) const;
  // Returns how many passes are in flight at a rank's peak, or fewer.
  [[nodiscard]] std::int64_t least_in_flight(std::int64_t rank) const;
  // Return what one pass, or all passes in flight, save if every layer is recomputed from its input.
  Bytes checkpoints(const StagePlace& place);
  Bytes checkpoints(Holding& holding);
  void fill_activations(const Recomputation& recompute);
  RankActivations activations_of(Holding& holding, std::int64_t rank);
  [[nodiscard]] std::vector<PassActivations> of_chunks(const Holding& holding) const;
  [[nodiscard]] Bytes activations_on_host(const Holding& holding, std::int64_t rank) const;
  [[nodiscard]] std::vector<StageActivations> stage_activations_of(const Recomputation& recompute) const;

  ComposedParts& shared_;
  const Request& base_;
  const Strategy& layout_;
  const PricedLayers& layers_;
  const PipelineOrder& order_;
  const ScheduleShape& shape_;
  const PlacedStages& placed_;
  Bytes reserved_;
  Bytes workspaces_;
  Bytes kept_logits_;                // on the rank with the output layer (StackMemory::keeps_logits)
  std::optional<ModelUnits> units_;  // if passes gather weights or reduce gradients
  std::vector<Holding> holdings_;    // by kind of rank

  std::optional<Recomputation> filled_;       // recomputation that activations_ are for
  std::vector<PassActivations> activations_;  // of the distinct stages
  std::vector<PassActivations> groups_;       // of the groups of a rank
  StageActivations scratch_;
  StagePlace asked_place_;               // of a rank queried with another number of layers than it has
  std::optional<Strategy> ranks_asked_;  // strategy that ranks_ are for
  std::vector<RankMemory> ranks_;
};

}  // namespace headroom

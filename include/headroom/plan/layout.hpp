// A layout: a model placed on the ranks of a pipeline. It answers what strategies that place and shard the
// model alike hold, and how long they take. Such strategies differ in recomputation, and in data sharding
// that leaves the passes unchanged (same_passes). Composer::layout() makes layouts.
//
// No question changes another's answer. Layouts store results in their composer, so each thread needs a
// composer of its own.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

struct RankPeak {
  std::size_t rank = 0;  // first rank that holds the most
  Bytes bytes;
  bool of_host = false;  // the host of a rank lacks memory, counted as if the GPU lacked it
  friend bool operator==(const RankPeak&, const RankPeak&) = default;
};

class ComposedParts;
class PipelineOrder;
class PricedLayers;
struct ModelExchanges;
struct PassActivations;
struct StageActivations;
struct StagePlace;

class Layout {
 public:
  Layout(Layout&& other) noexcept;
  Layout& operator=(Layout&& other) noexcept;
  ~Layout();

  [[nodiscard]] RankPeak peak(const Strategy& strategy) const;
  // Returns a lower bound of peak(): the fullest GPU if its layers saved only their inputs. Expects no window.
  [[nodiscard]] Bytes least_peak(const Strategy& strategy) const;
  // Returns the memory of every rank. The reference is valid until the next call of ranks() or peak().
  [[nodiscard]] const std::vector<RankMemory>& ranks(const Strategy& strategy) const;
  // Returns what a rank would hold at its peak with `layers` layers. Expects a model with one kind of layer,
  // one virtual stage per rank, no window, and no separate weight-gradient passes.
  [[nodiscard]] Bytes rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers) const;
  // Returns a lower bound of rank_total() for any recomputation, with what rank_total() expects.
  [[nodiscard]] Bytes least_rank_total(const Strategy& strategy, std::int64_t rank,
                                       std::int64_t layers) const;
  // Returns what a rank would hold at its peak with these virtual stages, one for each of its chunks.
  // Expects no window.
  [[nodiscard]] Bytes rank_total(const Strategy& strategy, std::int64_t rank,
                                 std::span<const StagePlace> chunks) const;
  // Returns all that a rank holds at its peak when its virtual stages save `passes`.
  [[nodiscard]] Bytes rank_total(std::int64_t rank, std::span<const PassActivations> passes) const;

  // The queries up to end_within_fit() need a system with performance figures.
  [[nodiscard]] Seconds iteration(const Strategy& strategy) const;
  // Returns a lower bound of iteration(), in closed form for every schedule.
  [[nodiscard]] Seconds least_iteration(const Strategy& strategy) const;
  // Returns the iteration time for virtual stages of these costs, in the order of the model.
  [[nodiscard]] Seconds iteration(std::span<const StageCost> stages) const;
  // Returns the iteration time with its parts, FLOPs and throughput.
  [[nodiscard]] Timing timing(const Strategy& strategy) const;
  [[nodiscard]] double mfu(Seconds iteration) const;
  // Returns whether the rates of the collectives that end the iteration were fitted to such sizes.
  [[nodiscard]] bool end_within_fit(const Strategy& strategy) const;

  // Parts, for callers that assemble virtual stages which no Recomputation names.
  [[nodiscard]] const PipelineOrder& order() const;
  [[nodiscard]] const ScheduleShape& shape() const;
  [[nodiscard]] const PricedLayers& layers() const;  // what the layers save and cost
  [[nodiscard]] PassTimes times_of(const StageCost& stage) const;
  [[nodiscard]] double overlap_loss() const;  // ScheduleTimes::overlap_loss
  // Returns the transfer times of ScheduleTimes::links.
  [[nodiscard]] std::span<const Seconds> links() const;
  // Returns what passes exchange with other ranks unit by unit, or null if they exchange nothing.
  [[nodiscard]] const ModelExchanges* exchanges() const;
  // Adds two things to what the layers of a virtual stage save: unsharded weights and gradients that passes
  // hold, and what weight-gradient passes read. The stage's first `apart.layers` layers save something other
  // than the rest.
  void complete(StageActivations& stage, const StagePlace& place, const Recomputation& apart) const;

 private:
  friend class Composer;
  Layout(ComposedParts& parts, const Strategy& strategy, std::span<const Recomputation> recomputations);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom

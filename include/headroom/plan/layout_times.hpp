// What the strategies of a layout take: its virtual stages priced, its links, its makespans and the end of an
// iteration. Each is worked out once for all strategies that share what it depends on. The composer
// (plan/composer.hpp) asks.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "headroom/plan/layer_prices.hpp"

namespace headroom {

// The virtual stages of a layout: the few places that differ, and for each chunk, in the order of the model, which of
// them.
struct LayoutStages {
  std::vector<StagePlace> distinct;
  std::vector<std::size_t> of;
  friend bool operator==(const LayoutStages&, const LayoutStages&) = default;
};

class LayoutTimes {
 public:
  // Keeps references.
  LayoutTimes(const Request& base, LayerPrices& layers);

  // The questions below are about this layout, for which the layers' prices are selected. The pipeline rank that has
  // the most parameters has `most`, of which `most_matrices` are in matrices. Keeps references to the stages and to the recomputations: of these, some are
  // timed together where that takes little longer than one.
  void set(const Strategy& layout, const ScheduleShape& shape, const LayoutStages& stages,
           const Parameters& most, const MatrixList& most_matrices,
           std::span<const Recomputation> recomputations);

  // Of any virtual stage that costs so much.
  [[nodiscard]] PassTimes times_of(const StageCost& stage) const;

  // Expects a recomputation without a window, and a schedule without passes for weights.
  Seconds makespan(const Recomputation& recompute);
  // At most that, and in closed form for every schedule.
  Seconds least_makespan(const Recomputation& recompute);

  const IterationEnd& end(DataSharding sharding);

  // Of the passes of its layers; null where they exchange nothing unit by unit.
  const ModelExchanges* exchanges() {
    time_layout();
    return exchanges_ ? &*exchanges_ : nullptr;
  }

  // The whole account. `windows` as in ScheduleTimes.
  IterationTime iteration(const Strategy& strategy, std::vector<std::int64_t> windows);
  // The same of virtual stages that cost so much, in the order of the model.
  IterationTime iteration(std::span<const StageCost> stages);

 private:
  static constexpr std::size_t most_pipelines_at_once = 8;  // timed together

  // One of the distinct virtual stages.
  struct Stage {
    StageCost cost;
    PassTimes times;
    ExchangeTimes exchanges;  // under the recomputation last timed
  };

  void time_layout();
  [[nodiscard]] std::int64_t devices_of_host() const;
  [[nodiscard]] BytesPerSecond host_link() const;  // expects a system that has hosts
  void time_recomputation(const Recomputation& recompute);
  void fill_spans(const Recomputation& recompute, std::vector<ChunkSpans>& spans);
  // Its place among the recomputations of the layout; their number where it is none of them.
  std::size_t place_of(const Recomputation& recompute);
  void find_makespans(std::size_t first);
  [[nodiscard]] ScheduleTimes empty_times(std::vector<std::int64_t> windows) const;  // without stages

  const Request& base_;
  LayerPrices& layers_;

  Strategy layout_;
  ScheduleShape shape_;
  const LayoutStages* places_ = nullptr;
  Parameters most_;
  MatrixList most_matrices_;
  bool layout_timed_ = false;
  std::vector<StageCost>
      plain_;  // of the distinct stages, where passes exchange something with other ranks or the host: without that
  std::optional<ModelExchanges> exchanges_;
  std::vector<Stage> stages_;
  std::vector<Seconds> links_;
  std::array<std::optional<IterationEnd>, spellings<DataSharding>.size()> ends_;  // by data sharding

  std::span<const Recomputation> recomputations_;
  std::size_t last_place_ = 0;                     // that was asked for
  std::vector<std::optional<Seconds>> makespans_;  // of these recomputations, where they are known
  std::vector<std::vector<ChunkSpans>> spans_;
};

}  // namespace headroom

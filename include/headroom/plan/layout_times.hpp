// Times of the strategies of a layout: priced virtual stages, links, makespans and the end of an iteration.
// Each is computed once for all strategies that share its inputs. The composer (plan/composer.hpp) queries
// them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "headroom/memory/matrices.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/plan/iteration.hpp"
#include "headroom/plan/layer_prices.hpp"
#include "headroom/schedule/makespan.hpp"
#include "headroom/schedule/order.hpp"
#include "headroom/time/unit_exchanges.hpp"

namespace headroom {

// Virtual stages of a layout: the few distinct places, and the index of its place for each chunk in model
// order.
struct LayoutStages {
  std::vector<StagePlace> distinct;
  std::vector<std::size_t> of;
  friend bool operator==(const LayoutStages&, const LayoutStages&) = default;
};

class LayoutTimes {
 public:
  // `most` are the parameters of the pipeline rank that has the most; `most_matrices` are the matrices among
  // them. Keeps references to all other arguments. Several recomputations are timed together where that takes
  // little longer than timing one.
  LayoutTimes(const Request& base, const Strategy& layout, const PricedLayers& layers,
              const PipelineOrder& order, const LayoutStages& stages, const Parameters& most,
              const MatrixList& most_matrices, std::span<const Recomputation> recomputations);

  // Returns the pass times of any virtual stage with this cost.
  [[nodiscard]] PassTimes times_of(const StageCost& stage) const;

  // Expects a recomputation without a window, and a schedule without passes for weights.
  Seconds makespan(const Recomputation& recompute);
  // Returns a lower bound of makespan(), in closed form for every schedule.
  Seconds least_makespan(const Recomputation& recompute);

  const IterationEnd& end(DataSharding sharding);

  // Returns the exchanges of the layers' passes, or null if passes exchange nothing unit by unit.
  const ModelExchanges* exchanges() {
    time_layout();
    return exchanges_ ? &*exchanges_ : nullptr;
  }

  // Returns ScheduleTimes::overlap_loss.
  [[nodiscard]] double overlap_loss() const;

  // Returns the transfer times of ScheduleTimes::links.
  std::span<const Seconds> links() {
    time_layout();
    return links_;
  }

  // Returns the full iteration time. `windows` are those of ScheduleTimes.
  IterationTime iteration(const Strategy& strategy, std::vector<std::int64_t> windows);
  // Returns the full iteration time for virtual stages of these costs, in the order of the model.
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
  // Returns the index among the layout's recomputations, or their number if `recompute` is not one of them.
  std::size_t place_of(const Recomputation& recompute);
  void find_makespans(std::size_t first);
  [[nodiscard]] ScheduleTimes empty_times(std::vector<std::int64_t> windows) const;  // without stages

  const Request& base_;
  const Strategy& layout_;
  const PricedLayers& layers_;
  const PipelineOrder& order_;
  const ScheduleShape& shape_;
  const LayoutStages& places_;
  const Parameters most_;
  const MatrixList most_matrices_;
  bool layout_timed_ = false;
  std::vector<StageCost>
      plain_;  // of the distinct stages, without exchanges; set if passes exchange with ranks or the host
  std::optional<ModelExchanges> exchanges_;
  std::vector<Stage> stages_;
  std::vector<Seconds> links_;
  std::array<std::optional<IterationEnd>, spellings<DataSharding>.size()> ends_;  // by data sharding

  std::span<const Recomputation> recomputations_;
  std::size_t last_place_ = 0;                     // of the last query
  std::vector<std::optional<Seconds>> makespans_;  // of the recomputations, if known
  std::array<std::vector<ChunkSpans>, most_pipelines_at_once> spans_;
};

}  // namespace headroom

#include "headroom/plan/layout.hpp"

#include <limits>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/plan/iteration_flops.hpp"
#include "plan/layout_memory.hpp"

namespace headroom {

struct Layout::Parts {
  Parts(ComposedParts& shared, const Strategy& of, std::span<const Recomputation> recomputations)
      : composed(shared),
        strategy(of),
        layers(shared.layers.of(strategy)),
        order(shared.order(schedule_shape(of, microbatches(of, shared.base.workload)))),
        placed(shared.placed(of, layers.layers(), order.shape())),
        memory(shared, strategy, layers, order, *placed),
        times(shared.base, strategy, layers, order, placed->stages, memory.with_most_parameters().parameters,
              memory.with_most_parameters().matrices, recomputations) {}

  IterationTime iteration_time(const Strategy& of);

  ComposedParts& composed;
  const Strategy strategy;
  const PricedLayers layers;
  const PipelineOrder order;
  const std::shared_ptr<const PlacedStages> placed;
  LayoutMemory memory;
  LayoutTimes times;
};

IterationTime Layout::Parts::iteration_time(const Strategy& of) {
  std::vector<std::int64_t> windows;
  if (of.recompute.window) {
    for (const RankMemory& rank : memory.ranks(of)) windows.push_back(rank.window);
  }
  return times.iteration(of, std::move(windows));
}

Layout::Layout(ComposedParts& parts, const Strategy& strategy, std::span<const Recomputation> recomputations)
    : parts_(std::make_unique<Parts>(parts, strategy, recomputations)) {}
Layout::Layout(Layout&& other) noexcept = default;
Layout& Layout::operator=(Layout&& other) noexcept = default;
Layout::~Layout() = default;

RankPeak Layout::peak(const Strategy& strategy) const { return parts_->memory.peak(strategy); }

Bytes Layout::least_peak(const Strategy& strategy) const { return parts_->memory.least_peak(strategy); }

const std::vector<RankMemory>& Layout::ranks(const Strategy& strategy) const {
  return parts_->memory.ranks(strategy);
}

Bytes Layout::rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers) const {
  return parts_->memory.rank_total(strategy, rank, layers);
}

Bytes Layout::least_rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers) const {
  return parts_->memory.least_rank_total(strategy, rank, layers);
}

Bytes Layout::rank_total(const Strategy& strategy, std::int64_t rank,
                         std::span<const StagePlace> chunks) const {
  return parts_->memory.rank_total(strategy, rank, chunks);
}

Bytes Layout::rank_total(std::int64_t rank, std::span<const PassActivations> passes) const {
  return parts_->memory.rank_total(rank, passes);
}

Seconds Layout::iteration(const Strategy& strategy) const {
  // If collectives at the end overlap a pass, it matters which rank is busiest.
  if (strategy.recompute.window || hides_end(parts_->composed.base.software, strategy) ||
      needs_replay(parts_->order.shape())) {
    return parts_->iteration_time(strategy).total;
  }
  const EndTimes end = end_times(parts_->times.end(strategy.data_sharding), {});
  return parts_->times.makespan(strategy.recompute) + end.data_communication + end.optimizer;
}

Seconds Layout::least_iteration(const Strategy& strategy) const {
  // A window saves at most every pass.
  const Recomputation least = strategy.recompute.window ? Recomputation{} : strategy.recompute;
  // Assumes passes long enough to hide the collectives at the end as far as possible.
  const Seconds forever(std::numeric_limits<double>::infinity());
  const EndTimes end = end_times(parts_->times.end(strategy.data_sharding), {forever, forever});
  return parts_->times.least_makespan(least) + end.data_communication + end.optimizer;
}

Seconds Layout::iteration(std::span<const StageCost> stages) const {
  return parts_->times.iteration(stages).total;
}

Timing Layout::timing(const Strategy& strategy) const {
  const Request& base = parts_->composed.base;
  const ModelLayers& of_model = layers().layers();
  Timing timing{.iteration = parts_->iteration_time(strategy)};
  timing.flops =
      iteration_flops(base.model, of_model, strategy, base.workload,
                      recomputed_parts(of_model, strategy, parts_->order.shape(), timing.iteration.schedule));
  timing.throughput = throughput(timing.flops, timing.iteration.total, strategy, base.workload,
                                 base.system.performance->device);
  return timing;
}

double Layout::mfu(Seconds iteration) const {
  const Device& device = parts_->composed.base.system.performance->device;
  return utilization(parts_->composed.model_flops(layers().layers()), iteration, devices(parts_->strategy),
                     peak_of(device, compute_dtype(parts_->strategy.precision)));
}

bool Layout::end_within_fit(const Strategy& strategy) const {
  return parts_->times.end(strategy.data_sharding).replicas.within_fit;
}

const PipelineOrder& Layout::order() const { return parts_->order; }
const ScheduleShape& Layout::shape() const { return parts_->order.shape(); }
const PricedLayers& Layout::layers() const { return parts_->layers; }
PassTimes Layout::times_of(const StageCost& stage) const { return parts_->times.times_of(stage); }
double Layout::overlap_loss() const { return parts_->times.overlap_loss(); }
std::span<const Seconds> Layout::links() const { return parts_->times.links(); }
const ModelExchanges* Layout::exchanges() const { return parts_->times.exchanges(); }

void Layout::complete(StageActivations& stage, const StagePlace& place, const Recomputation& apart) const {
  parts_->memory.complete(stage, place, apart);
}

}  // namespace headroom

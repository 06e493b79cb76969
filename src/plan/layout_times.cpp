#include "headroom/plan/layout_times.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/time/host_transfers.hpp"
#include "headroom/time/model_exchanges.hpp"
#include "headroom/time/offload.hpp"
#include "headroom/time/optimizer_step.hpp"

namespace headroom {

namespace {

// Returns the cost with a forward pass of a reference model, which has the same layers, before that of the model.
StageCost with_reference(StageCost stage) {
  stage.forward = stage.forward + stage.forward;
  stage.race = stage.race * stage.race;
  return stage;
}

ExchangeTimes with_reference(ExchangeTimes times) {
  times.gather += times.forward_gather;
  times.exposed_forward += times.exposed_forward;
  times.exposed_host_forward += times.exposed_host_forward;
  return times;
}

}  // namespace

LayoutTimes::LayoutTimes(const Request& base, const Strategy& layout, const PricedLayers& layers,
                         const PipelineOrder& order, const LayoutStages& stages, const Parameters& most,
                         const MatrixList& most_matrices, std::span<const Recomputation> recomputations)
    : base_(base),
      layout_(layout),
      layers_(layers),
      order_(order),
      shape_(order.shape()),
      places_(stages),
      most_(most),
      most_matrices_(most_matrices),
      recomputations_(recomputations),
      makespans_(recomputations.size()) {}

PassTimes LayoutTimes::times_of(const StageCost& stage) const {
  return pass_times(stage, shape_, base_.system.performance->rates.host, base_.software);
}

double LayoutTimes::overlap_loss() const {
  return exchange_loss(layout_.moe_dispatcher, *base_.system.performance);
}

std::int64_t LayoutTimes::devices_of_host() const {
  return std::min(devices(layout_), host_size(base_.system));
}

BytesPerSecond LayoutTimes::host_link() const { return link_of(*base_.system.host, devices_of_host()); }

void LayoutTimes::time_layout() {
  if (layout_timed_) return;
  layout_timed_ = true;
  links_ = send_times(base_.model, layout_, base_.workload, connected_devices(base_.system, devices(layout_)),
                      *base_.system.performance, base_.software);
  const ModelCost& cost = layers_.cost(layout_.recompute);
  exchanges_.reset();
  plain_.clear();
  if (has_exchanges(layout_, base_.workload, base_.software)) {
    exchanges_ = model_exchanges(layers_.layers(), layers_.parameters(), layout_, base_.workload,
                                 connected_devices(base_.system, devices(layout_)), *base_.system.performance,
                                 base_.software);
    if (base_.system.host) {
      set_parameter_transfers(*exchanges_, layers_.parameters(), layout_, base_.workload, base_.software,
                              host_link());
    }
  }
  stages_.clear();
  for (const StagePlace& place : places_.distinct) {
    Stage& stage = stages_.emplace_back();
    stage.cost = stage_cost(cost, place, {});
    if (exchanges_) {
      plain_.push_back(stage.cost);
    } else {
      if (base_.workload.reference_model) stage.cost = with_reference(stage.cost);
      stage.times = times_of(stage.cost);
    }
  }
}

void LayoutTimes::time_recomputation(const Recomputation& recompute) {
  time_layout();
  const ModelCost& cost = layers_.cost(recompute);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    if (exchanges_) {
      // Overlap of collectives depends on what is recomputed, and so does offloading.
      if (offloads_activations(layout_.offload) && base_.system.host) {
        set_activation_transfers(*exchanges_, layers_.activations(recompute), layout_.offload,
                                 base_.model.layers, host_link());
      }
      stage.exchanges = exchange_times(*exchanges_, cost, places_.distinct[i], recompute,
                                       *base_.system.performance, base_.software);
      stage.cost = with_exchanges(plain_[i], *exchanges_, stage.exchanges, places_.distinct[i]);
      if (base_.workload.reference_model) {
        stage.cost = with_reference(stage.cost);
        stage.exchanges = with_reference(stage.exchanges);
      }
    }
    stage.cost.recompute = recompute_cost(cost, places_.distinct[i], recompute);
    if (exchanges_) {
      stage.times = times_of(stage.cost);
    } else {
      add_recomputation(stage.times, stage.cost, shape_.kind, base_.system.performance->rates.host,
                        base_.software);
    }
  }
}

void LayoutTimes::fill_spans(const Recomputation& recompute, std::vector<ChunkSpans>& spans) {
  time_recomputation(recompute);
  spans.clear();
  const double loss = overlap_loss();
  for (std::size_t i = 0; i < places_.of.size(); ++i) {
    const PassTimes& times = stages_[places_.of[i]].times;
    spans.push_back(chunk_spans(shape_, times, links_, static_cast<std::int64_t>(i), loss));
  }
}

std::size_t LayoutTimes::place_of(const Recomputation& recompute) {
  // Recomputations are queried in order, each for one or two strategies.
  const auto begin = recomputations_.begin() + std::ptrdiff_t(last_place_);
  auto found = std::find(begin, recomputations_.end(), recompute);
  if (found == recomputations_.end()) found = std::find(recomputations_.begin(), begin, recompute);
  const bool known = found != recomputations_.end() && *found == recompute;
  if (known) last_place_ = index(found - recomputations_.begin());
  return known ? last_place_ : recomputations_.size();
}

void LayoutTimes::find_makespans(std::size_t first) {
  const std::size_t at_once = goes_round(shape_.kind) ? most_pipelines_at_once : 1;
  // Later recomputations recompute more and need less memory, so they will be queried after this one.
  std::array<std::size_t, most_pipelines_at_once> places{};
  std::array<std::span<const ChunkSpans>, most_pipelines_at_once> pipelines;
  std::size_t count = 0;
  for (std::size_t i = first; i < recomputations_.size() && count < at_once; ++i) {
    if (recomputations_[i].window) continue;
    fill_spans(recomputations_[i], spans_[count]);
    pipelines[count] = spans_[count];
    places[count++] = i;
  }
  std::array<Seconds, most_pipelines_at_once> longest;
  makespans(shape_, std::span(pipelines).first(count), std::span(longest).first(count));
  for (std::size_t i = 0; i < count; ++i) makespans_[places[i]] = longest[i];
}

Seconds LayoutTimes::makespan(const Recomputation& recompute) {
  const std::size_t place = place_of(recompute);
  if (place == recomputations_.size()) {
    fill_spans(recompute, spans_.front());
    return headroom::makespan(shape_, spans_.front());
  }
  if (!makespans_[place]) find_makespans(place);
  return *makespans_[place];
}

Seconds LayoutTimes::least_makespan(const Recomputation& recompute) {
  fill_spans(recompute, spans_.front());
  return headroom::least_makespan(shape_, spans_.front());
}

const IterationEnd& LayoutTimes::end(DataSharding sharding) {
  std::optional<IterationEnd>& end = ends_[index(sharding)];
  if (end) return *end;
  Strategy strategy = layout_;
  strategy.data_sharding = sharding;
  // All ranks wait for the slowest: the one with the most parameters.
  IterationEnd made = iteration_end(base_.model, strategy, base_.workload, most_, most_matrices_,
                                    connected_devices(base_.system, devices(strategy)),
                                    *base_.system.performance, base_.software);
  if (strategy.offload.optimizer.value > 0 && base_.system.host) {
    const Seconds around =
        unstepped_time(most_, strategy, base_.workload, *base_.system.performance, base_.software);
    made.optimizer = total(offloaded_step(most_, strategy, base_.workload, made.optimizer, around,
                                          base_.software, *base_.system.host, devices_of_host()),
                           strategy.offload);
  }
  return end.emplace(made);
}

ScheduleTimes LayoutTimes::empty_times(std::vector<std::int64_t> windows) const {
  return {.stages = {}, .links = links_, .windows = std::move(windows), .overlap_loss = overlap_loss()};
}

IterationTime LayoutTimes::iteration(const Strategy& strategy, std::vector<std::int64_t> windows) {
  time_recomputation(strategy.recompute);
  ScheduleTimes times = empty_times(std::move(windows));
  std::vector<StageCost> stages;
  for (const std::size_t stage : places_.of) {
    stages.push_back(stages_[stage].cost);
    times.stages.push_back(stages_[stage].times);
  }
  IterationTime result = iteration_time(order_, std::move(times), stages, end(strategy.data_sharding));
  result.cost = layers_.cost(strategy.recompute);
  for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
    const auto place = stage_of(shape_, static_cast<std::int64_t>(result.critical_rank), chunk);
    result.exchanges = result.exchanges + stages_[places_.of[index(place)]].exchanges;
  }
  return result;
}

IterationTime LayoutTimes::iteration(std::span<const StageCost> stages) {
  time_layout();
  ScheduleTimes times = empty_times({});
  std::vector<StageCost> costs(stages.begin(), stages.end());
  for (StageCost& stage : costs) {
    if (base_.workload.reference_model) stage = with_reference(stage);
    times.stages.push_back(times_of(stage));
  }
  return iteration_time(order_, std::move(times), costs, end(layout_.data_sharding));
}

}  // namespace headroom

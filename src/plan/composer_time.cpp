// The questions to the composer about time.
#include <algorithm>
#include <limits>

#include "headroom/core/counts.hpp"
#include "headroom/plan/composer.hpp"

namespace headroom {

PassTimes Composer::times_of(const StageCost& stage) const {
  return pass_times(stage, base_.system.performance->rates.host, base_.software);
}

void Composer::time_layout() {
  if (layout_timed_) return;
  layout_timed_ = true;
  links_ = send_times(base_.model, layout_, base_.workload, base_.system.devices_per_node,
                      *base_.system.performance, base_.software);
  const ModelCost& cost = layers_.cost(layout_.recompute);
  for (Stage& stage : stages_) {
    stage.cost = stage_cost(cost, stage.place, {});
    stage.times = times_of(stage.cost);
  }
}

void Composer::time_replays(const Recomputation& recompute) {
  time_layout();
  const ModelCost& cost = layers_.cost(recompute);
  for (Stage& stage : stages_) {
    stage.cost.replay = replay_cost(cost, stage.place, recompute);
    stage.times.replay =
        replay_time(stage.cost, stage.times.backward, base_.system.performance->rates.host, base_.software);
  }
}

void Composer::fill_spans(const Recomputation& recompute, std::vector<ChunkSpans>& spans) {
  time_replays(recompute);
  spans.clear();
  for (std::size_t i = 0; i < stage_of_.size(); ++i) {
    spans.push_back(chunk_spans(shape_, stages_[stage_of_[i]].times, links_, static_cast<std::int64_t>(i)));
  }
}

Seconds Composer::makespan_of(const Recomputation& recompute) {
  const std::size_t at_once = shape_.kind == ScheduleKind::interleaved ? most_pipelines_at_once : 1;
  const auto asked = std::find(recomputations_.begin(), recomputations_.end(), recompute);
  if (at_once == 1 || asked == recomputations_.end()) {
    fill_spans(recompute, spans_.front());
    return makespan(shape_, spans_.front());
  }
  const auto first = index(asked - recomputations_.begin());
  if (makespans_[first]) return *makespans_[first];
  // Those that follow replay more and need less memory: where one is asked for, so will they be.
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
  return *makespans_[first];
}

const IterationEnd& Composer::end_of(bool distributed_optimizer) {
  std::optional<IterationEnd>& end = ends_[index(distributed_optimizer)];
  if (end) return *end;
  Strategy strategy = layout_;
  strategy.distributed_optimizer = distributed_optimizer;
  // All ranks wait for the slowest: the one with the most parameters.
  Parameters parameters;
  for (const RankKind& kind : kinds_) parameters = fuller(parameters, kind.parameters);
  return end.emplace(iteration_end(base_.model, strategy, parameters, base_.system.devices_per_node,
                                   *base_.system.performance, base_.software));
}

Seconds Composer::iteration(const Strategy& strategy) {
  // Where the reduction of gradients hides behind a backward pass, it matters which rank is busiest.
  const bool overlaps = base_.software.overlaps_data_parallel && strategy.data_parallel > 1;
  if (strategy.recompute.window || overlaps) return iteration_time(strategy).total;
  set_recompute(strategy.recompute);
  if (!makespan_) makespan_ = makespan_of(strategy.recompute);
  const EndTimes end = end_times(end_of(strategy.distributed_optimizer), Seconds(0));
  return *makespan_ + end.data_communication + end.optimizer;
}

Seconds Composer::least_iteration(const Strategy& strategy) {
  // A window stores at the most every pass.
  const Recomputation least = strategy.recompute.window ? Recomputation{} : strategy.recompute;
  set_recompute(least);
  // As if a backward pass were long enough to hide the reduction of gradients as far as that goes.
  const EndTimes end =
      end_times(end_of(strategy.distributed_optimizer), Seconds(std::numeric_limits<double>::infinity()));
  fill_spans(least, spans_.front());
  return least_makespan(shape_, spans_.front()) + end.data_communication + end.optimizer;
}

Seconds Composer::iteration(std::span<const StageCost> stages) {
  time_layout();
  ScheduleTimes times{.stages = {}, .links = links_, .windows = {}};
  for (const StageCost& stage : stages) times.stages.push_back(times_of(stage));
  return headroom::iteration_time(shape_, std::move(times), stages, end_of(layout_.distributed_optimizer))
      .total;
}

IterationTime Composer::iteration_time(const Strategy& strategy) {
  time_replays(strategy.recompute);
  ScheduleTimes times{.stages = {}, .links = links_, .windows = {}};
  std::vector<StageCost> stages;
  for (const std::size_t stage : stage_of_) {
    stages.push_back(stages_[stage].cost);
    times.stages.push_back(stages_[stage].times);
  }
  if (strategy.recompute.window) {
    for (const RankMemory& rank : ranks_of(strategy)) times.windows.push_back(rank.window);
  }
  IterationTime result =
      headroom::iteration_time(shape_, std::move(times), stages, end_of(strategy.distributed_optimizer));
  result.cost = layers_.cost(strategy.recompute);
  return result;
}

Timing Composer::timing_of(const Strategy& strategy) {
  Timing timing{.iteration = iteration_time(strategy)};
  timing.flops = iteration_flops(base_.model, layers_.layers(), strategy, base_.workload,
                                 replayed_part(base_.model, strategy, shape_, timing.iteration.schedule));
  timing.throughput = throughput(timing.flops, timing.iteration.total, strategy, base_.workload,
                                 peak_of(base_.system.performance->device, compute_dtype(base_.model)));
  return timing;
}

double Composer::mfu(Seconds iteration) {
  if (!model_flops_) {
    model_flops_ = iteration_flops(base_.model, layers_.layers(), Strategy{}, base_.workload, 0).model;
    peak_rate_ = peak_of(base_.system.performance->device, compute_dtype(base_.model));
  }
  return utilization(*model_flops_, iteration, devices_, peak_rate_);
}

}  // namespace headroom

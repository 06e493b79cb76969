// The time questions of a composer.
#include <algorithm>
#include <limits>

#include "headroom/core/counts.hpp"
#include "headroom/plan/composer.hpp"
#include "plan/account.hpp"

namespace headroom {
namespace {

Breakdown& operator+=(Breakdown& x, const Breakdown& y) {
  for (const auto& [name, part] : breakdown_parts) x.*part += y.*part;
  return x;
}

Breakdown operator*(double k, const Breakdown& x) {
  Breakdown result;
  for (const auto& [name, part] : breakdown_parts) result.*part = k * (x.*part);
  return result;
}

Seconds sum(const Breakdown& x) {
  Seconds total;
  for (const auto& [name, part] : breakdown_parts) total += x.*part;
  return total;
}

// One microbatch forward and backward through one stage chunk, without replay.
Breakdown breakdown_of(const StageCost& stage, const PassTimes& times) {
  const PassCost cost = stage.forward + stage.backward;
  return {.matrix_products = cost.matrix_products,
          .attention_products = cost.attention_products,
          .streaming = cost.streaming,
          .tensor_communication = cost.communication,
          .host = times.forward + times.backward - device_time(cost)};
}

std::size_t busiest(const std::vector<ReplayedRank>& ranks) {
  const auto longest = std::max_element(ranks.begin(), ranks.end(), [](const auto& x, const auto& y) {
    return busy(x) + x.sending < busy(y) + y.sending;
  });
  return static_cast<std::size_t>(longest - ranks.begin());
}

}  // namespace

PassTimes Composer::times_of(const StageCost& stage) const {
  return pass_times(stage, base_.system.performance->rates.host, base_.software);
}

void Composer::time_layout() {
  if (layout_timed_) return;
  layout_timed_ = true;
  links_ = send_times(base_.model, layout_, base_.workload, base_.system.devices_per_node,
                      *base_.system.performance, base_.software);
  const ModelCost& cost = cost_of(layout_.recompute);
  for (Stage& stage : stages_) stage.times = times_of(stage_cost(cost, stage.place, {}));
}

void Composer::time_replays(const Recomputation& recompute) {
  time_layout();
  const ModelCost& cost = cost_of(recompute);
  for (Stage& stage : stages_) {
    stage.times.replay = replay_time(stage_cost(cost, stage.place, recompute), stage.times.backward,
                                     base_.system.performance->rates.host, base_.software);
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

double Composer::most_parameters() const {
  double most = 0;
  for (const RankKind& kind : kinds_) most = std::max(most, kind.parameters);
  return most;
}

const IterationEnd& Composer::end_of(bool distributed_optimizer) {
  std::optional<IterationEnd>& end = ends_[index(distributed_optimizer)];
  if (end) return *end;
  Strategy strategy = layout_;
  strategy.distributed_optimizer = distributed_optimizer;
  // All ranks wait for the slowest: the one with the most parameters.
  const double parameters = most_parameters();
  return end.emplace(iteration_end(base_.model, strategy, parameters, base_.system.devices_per_node,
                                   *base_.system.performance, base_.software));
}

EndTimes Composer::end_times(const IterationEnd& end, Seconds last_backward) const {
  return {.data_communication = exposed_data_parallel_time(end.replicas.reduction, last_backward,
                                                           *base_.system.performance, base_.software) +
                                end.replicas.gather + end.tied_embeddings,
          .optimizer = end.optimizer};
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
  return iteration_time(stages, std::move(times), end_of(layout_.distributed_optimizer)).total;
}

IterationTime Composer::iteration_time(const Strategy& strategy) {
  time_replays(strategy.recompute);
  const ModelCost& cost = cost_of(strategy.recompute);
  ScheduleTimes times{.stages = {}, .links = links_, .windows = {}};
  std::vector<StageCost> stages;
  for (const std::size_t stage : stage_of_) {
    stages.push_back(stage_cost(cost, stages_[stage].place, strategy.recompute));
    times.stages.push_back(stages_[stage].times);
  }
  if (strategy.recompute.window) {
    for (const RankMemory& rank : ranks_of(strategy)) times.windows.push_back(rank.window);
  }
  IterationTime result = iteration_time(stages, std::move(times), end_of(strategy.distributed_optimizer));
  result.cost = cost;
  return result;
}

IterationTime Composer::iteration_time(std::span<const StageCost> stages, ScheduleTimes times,
                                       const IterationEnd& end) const {
  IterationTime result{.cost = {}, .shape = shape_, .times = std::move(times)};
  result.schedule = timed_schedule(shape_, result.times);
  result.critical_rank = busiest(result.schedule.ranks);

  const ReplayedRank& critical = result.schedule.ranks[result.critical_rank];
  Seconds last_backward;
  for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
    const auto stage = index(stage_of(shape_, static_cast<std::int64_t>(result.critical_rank), chunk));
    const PassTimes& pass = result.times.stages[stage];
    result.breakdown += static_cast<double>(shape_.microbatches) * breakdown_of(stages[stage], pass);
    last_backward += pass.replay + pass.backward;
  }
  result.breakdown.recomputation = critical.replay;
  result.breakdown.pipeline_communication = critical.sending;
  const EndTimes times_of_end = end_times(end, last_backward);
  result.breakdown.data_communication = times_of_end.data_communication;
  result.breakdown.optimizer = times_of_end.optimizer;
  result.total = result.schedule.makespan + result.breakdown.data_communication + result.breakdown.optimizer;
  // The wait is what is left, so that the parts add up whatever was rounded.
  result.breakdown.bubble = Seconds(0);
  result.breakdown.bubble = std::max(result.total - sum(result.breakdown), Seconds(0));
  return result;
}

double Composer::replayed_part(const Strategy& strategy, const ReplayedSchedule& schedule) const {
  const double passes = real(shape_.microbatches * shape_.chunks);
  double replayed = 0;
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    const double stored = real(schedule.ranks[index(rank)].stored_forwards);
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      replayed +=
          (1 - stored / passes) * real(replayed_layers(stage(rank, chunk).place.layers, strategy.recompute));
    }
  }
  return replayed / real(base_.model.layers);
}

Timing Composer::timing_of(const Strategy& strategy) {
  Timing timing{.iteration = iteration_time(strategy)};
  timing.flops = iteration_flops(base_.model, strategy, base_.workload,
                                 replayed_part(strategy, timing.iteration.schedule));
  timing.throughput = throughput(timing.flops, timing.iteration.total, strategy, base_.workload,
                                 base_.system.performance->device.half_peak);
  return timing;
}

}  // namespace headroom

#include "headroom/plan/composer.hpp"

#include <algorithm>
#include <limits>

#include "headroom/core/counts.hpp"
#include "plan/account.hpp"

namespace headroom {

Composer::Composer(const Request& base) : base_(base), layers_(base), spans_(most_pipelines_at_once) {}

void Composer::set_layout(const Strategy& layout, std::span<const Recomputation> recomputations) {
  layout_ = layout;
  devices_ = devices(layout);
  reserved_ = reserved(base_.system, layout);
  layers_.select(layout);
  shape_ = schedule_shape(layout, microbatches(layout, base_.workload));
  stages_.clear();
  stage_of_.clear();
  for (const StagePlace& place : stage_places(layers_.layers(), layout)) {
    const auto same = std::find_if(stages_.begin(), stages_.end(),
                                   [&](const Stage& stage) { return stage.place == place; });
    stage_of_.push_back(index(same - stages_.begin()));
    if (same == stages_.end())
      stages_.push_back({.place = place, .activations = {}, .cost = {}, .times = {}});
  }
  find_rank_kinds();
  layout_timed_ = false;
  ends_ = {};
  recomputations_ = recomputations;
  makespans_.assign(recomputations.size(), std::nullopt);
  recompute_.reset();
  ranks_asked_.reset();
}

void Composer::find_rank_kinds() {
  kinds_.clear();
  kind_of_.clear();
  const auto same = [&](std::int64_t x, std::int64_t y) {
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      if (&stage(x, chunk) != &stage(y, chunk)) return false;
    }
    return true;
  };
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    const auto known = std::find_if(kinds_.begin(), kinds_.end(),
                                    [&](const RankKind& kind) { return same(kind.rank, rank); });
    kind_of_.push_back(index(known - kinds_.begin()));
    if (known != kinds_.end()) continue;
    RankKind kind;
    kind.rank = rank;
    KindCounts held;
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      const StagePlace& place = stage(rank, chunk).place;
      kind.layers += place.layers;
      held = chunk == 0 ? place.of_kind : held + place.of_kind;
      kind.one_stage = kind.one_stage && &stage(rank, chunk) == &stage(rank, 0);
    }
    kind.parameters = parameters_of_rank(layers_.parameters(), held, shape_.ranks == 1);
    Strategy strategy = layout_;
    for (const bool sharded : {false, true}) {
      strategy.distributed_optimizer = sharded;
      kind.state[index(sharded)] = total(model_state(base_.model, strategy, kind.parameters));
    }
    kinds_.push_back(std::move(kind));
  }
}

const Composer::Stage& Composer::stage(std::int64_t rank, std::int64_t chunk) const {
  return stages_[stage_of_[index(stage_of(shape_, rank, chunk))]];
}

Verdict Composer::verdict(Bytes peak) const {
  const Bytes headroom = base_.system.memory - peak;
  if (headroom < Bytes(0)) return Verdict::does_not_fit;
  return headroom < marginal_fraction * base_.system.memory ? Verdict::marginal : Verdict::fits;
}

void Composer::set_recompute(const Recomputation& recompute) {
  if (recompute_ == recompute) return;
  recompute_ = recompute;
  filled_ = false;
  makespan_.reset();
}

void Composer::fill_activations(const Recomputation& recompute) {
  set_recompute(recompute);
  if (filled_) return;
  const ModelActivations& activations = layers_.activations(recompute);
  for (Stage& stage : stages_) {
    set_stage_activations(scratch_, activations, stage.place, recompute);
    stage.activations = pass_activations(scratch_);
  }
  for (RankKind& kind : kinds_) kind.activations = fullest(kind);
  filled_ = true;
}

std::span<const PassActivations> Composer::passes_of(std::int64_t rank) {
  passes_.clear();
  for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
    passes_.push_back(stage(rank, chunk).activations);
  }
  return passes_;
}

const std::vector<LiveMoment>& Composer::moments_of(const ChunkGroups& groups, std::int64_t rank) {
  const ScheduleShape shape = same_liveness(shape_);
  const auto [entry, added] =
      moments_.try_emplace({shape.ranks, shape.chunks, shape.microbatches, rank, groups});
  if (added) entry->second = live_moments(groups, shape, rank);
  return entry->second;
}

Bytes Composer::fullest(RankKind& kind) {
  const std::span<const PassActivations> passes =
      kind.one_stage ? std::span(&stage(kind.rank, 0).activations, 1) : passes_of(kind.rank);
  if (all_alike(passes)) return total(rank_activations(passes, shape_, kind.rank).at_peak);
  ChunkGroups groups = chunk_groups(passes);
  if (kind.moments == nullptr || kind.groups != groups) {
    kind.moments = &moments_of(groups, kind.rank);
    kind.groups = std::move(groups);
  }
  return total(rank_activations(passes, *kind.moments, kind.rank).at_peak);
}

RankActivations Composer::activations_of_rank(std::int64_t rank) {
  const std::span<const PassActivations> passes = passes_of(rank);
  if (all_alike(passes)) return rank_activations(passes, shape_, rank);
  return rank_activations(passes, moments_of(chunk_groups(passes), rank), rank);
}

std::vector<StageActivations> Composer::stage_activations_of(const Recomputation& recompute) {
  const ModelActivations& activations = layers_.activations(recompute);
  std::vector<StageActivations> stages;
  for (const std::size_t stage : stage_of_) {
    stages.push_back(stage_activations(activations, stages_[stage].place, recompute));
  }
  return stages;
}

const std::vector<RankMemory>& Composer::ranks_of(const Strategy& strategy) {
  if (ranks_asked_ == strategy) return ranks_;
  fill_activations(strategy.recompute);
  std::vector<StageActivations> checkpointed;
  std::vector<StageActivations> full;
  if (strategy.recompute.window) {
    checkpointed = stage_activations_of(strategy.recompute);
    full = stage_activations_of({});
  }
  ranks_.clear();
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    const RankKind& kind = kinds_[kind_of_[index(rank)]];
    RankMemory memory{.state = model_state(base_.model, strategy, kind.parameters), .reserved = reserved_};
    if (strategy.recompute.window) {
      const Bytes available = (1 - marginal_fraction) * base_.system.memory - total(memory);
      memory.window = largest_window(checkpointed, full, shape_, rank, available);
    }
    memory.activations = memory.window == 0
                             ? activations_of_rank(rank)
                             : rank_activations(checkpointed, full, memory.window, shape_, rank);
    memory.activations.layers = kind.layers;
    ranks_.push_back(memory);
  }
  ranks_asked_ = strategy;
  return ranks_;
}

RankPeak Composer::peak(const Strategy& strategy) {
  if (strategy.recompute.window) {
    const std::vector<RankMemory>& ranks = ranks_of(strategy);
    const std::size_t rank = fullest_rank(ranks);
    return {.rank = rank, .bytes = total(ranks[rank])};
  }
  fill_activations(strategy.recompute);
  RankPeak highest;
  for (const RankKind& kind : kinds_) {
    const Bytes bytes = kind.state[index(strategy.distributed_optimizer)] + kind.activations + reserved_;
    if (bytes > highest.bytes) highest = {.rank = index(kind.rank), .bytes = bytes};
  }
  return highest;
}

Bytes Composer::rank_total(std::int64_t rank, std::span<const PassActivations> passes) const {
  const Bytes state = kinds_[kind_of_[index(rank)]].state[index(layout_.distributed_optimizer)];
  return state + total(rank_activations(passes, shape_, rank).at_peak) + reserved_;
}

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

Evaluation Composer::evaluate(const Strategy& strategy) {
  if (std::vector<Problem> problems = illegalities(base_.model, strategy, base_.workload);
      !problems.empty()) {
    throw InputError(std::move(problems));
  }
  set_layout(strategy);
  Plan plan{.request = base_, .ranks = ranks_of(strategy)};
  plan.request.strategy = strategy;
  plan.peak_rank = fullest_rank(plan.ranks);
  bool reduction_within_fit = true;
  if (base_.system.performance) {
    plan.timing = timing_of(strategy);
    reduction_within_fit = end_of(strategy.distributed_optimizer).replicas.within_fit;
  }
  plan.assumptions = assumptions_of(base_.system, strategy);
  plan.warnings = warnings_of(plan, layers_.activations(strategy.recompute), reduction_within_fit);
  plan.verdict = verdict(headroom::peak(plan));
  if (plan.verdict != Verdict::does_not_fit) return plan;
  const Bytes needed = headroom::peak(plan);
  return Infeasible{.attempt = std::move(plan),
                    .limit = "device_memory",
                    .needed = needed,
                    .available = base_.system.memory};
}

}  // namespace headroom

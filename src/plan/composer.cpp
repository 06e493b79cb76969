#include "headroom/plan/composer.hpp"

#include <algorithm>
#include <limits>

#include "headroom/core/counts.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_at_once = 8;  // pipelines timed together

}  // namespace

Composer::Composer(const Request& base)
    : base_(base), layer_(layer_ops(base.model.architecture)), spans_(most_at_once) {
  model_flops_ = iteration_flops(base.model, Strategy{}, base.workload, 0).model;
}

Composer::Symbolic& Composer::symbolic_of(const Strategy& strategy) {
  const Sharding sharding = sharding_of(base_.model, strategy);
  for (Symbolic& symbolic : symbolic_) {
    if (symbolic.sharding == sharding) return symbolic;
  }
  Symbolic& symbolic = symbolic_.emplace_back();
  symbolic.sharding = sharding;
  symbolic.parameters = model_parameter_exprs(base_.model, sharding);
  return symbolic;
}

Composer::Priced& Composer::priced_of(const Strategy& strategy) {
  const auto [entry, added] =
      priced_.try_emplace({strategy.tensor_parallel, strategy.micro_batch, strategy.sequence_parallel});
  Priced& priced = entry->second;
  if (added) {
    priced.symbolic = &symbolic_of(strategy);
    priced.parameters =
        evaluate(priced.symbolic->parameters, bindings(base_.model, strategy, base_.workload));
  }
  return priced;
}

const ModelActivations& Composer::activations_of(const Strategy& strategy) {
  const std::size_t policy = index(strategy.recompute.policy);
  std::optional<ModelActivations>& activations = now_->activations[policy];
  if (!activations) {
    std::optional<ModelActivationExprs>& exprs = now_->symbolic->activations[policy];
    if (!exprs) exprs = model_activation_exprs(base_.model, strategy, base_.detail);
    activations = evaluate(*exprs, bindings(base_.model, strategy, base_.workload));
  }
  return *activations;
}

const ModelCost& Composer::cost_of(const Recomputation& recompute) {
  const std::size_t policy = index(recompute.policy);
  std::optional<ModelCost>& cost = now_->costs[policy];
  if (cost) return *cost;
  Symbolic& symbolic = *now_->symbolic;
  if (!now_->model) {
    const Setting setting = setting_of(base_.model, layout_, base_.workload, base_.system.devices_per_node,
                                       *base_.system.performance, base_.software);
    if (!symbolic.work) symbolic.work = model_work(base_.model.architecture, setting);
    now_->model = priced(*symbolic.work, setting);
  }
  return cost.emplace(model_cost(*now_->model, replay_of(layer_, recompute)));
}

void Composer::set_layout(const Strategy& layout, std::span<const Recomputation> recomputations) {
  layout_ = layout;
  reserved_ = reserved(base_.system, layout);
  now_ = &priced_of(layout);
  shape_ = schedule_shape(layout, microbatches(layout, base_.workload));
  stages_.clear();
  stage_of_.clear();
  for (const StagePlace& place : stage_places(base_.model, layout)) {
    const auto same = std::find_if(stages_.begin(), stages_.end(),
                                   [&](const Stage& stage) { return stage.place == place; });
    stage_of_.push_back(index(same - stages_.begin()));
    if (same == stages_.end()) stages_.push_back({.place = place, .activations = {}, .times = {}});
  }
  find_rank_kinds();
  layout_timed_ = false;
  ends_ = {};
  recomputations_ = recomputations;
  makespans_.assign(recomputations.size(), std::nullopt);
  recompute_.reset();
}

void Composer::find_rank_kinds() {
  kinds_.clear();
  const auto same = [&](std::int64_t x, std::int64_t y) {
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      if (stage_of_[index(stage_of(shape_, x, chunk))] != stage_of_[index(stage_of(shape_, y, chunk))])
        return false;
    }
    return true;
  };
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    const bool known = std::any_of(kinds_.begin(), kinds_.end(),
                                   [&](const RankKind& kind) { return same(kind.rank, rank); });
    if (known) continue;
    RankKind kind;
    kind.rank = rank;
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      kind.layers += stages_[stage_of_[index(stage_of(shape_, rank, chunk))]].place.layers;
    }
    kind.parameters = parameters_of_rank(now_->parameters, kind.layers, rank == 0, rank + 1 == shape_.ranks);
    Strategy strategy = layout_;
    for (const bool sharded : {false, true}) {
      strategy.distributed_optimizer = sharded;
      kind.state[index(sharded)] = total(model_state(base_.model, strategy, kind.parameters));
    }
    kinds_.push_back(std::move(kind));
  }
}

void Composer::set_recompute(const Strategy& strategy) {
  if (recompute_ == strategy.recompute) return;
  recompute_ = strategy.recompute;
  filled_ = false;
  makespan_.reset();
}

Plan Composer::whole_plan(const Strategy& strategy) const {
  Request request = base_;
  request.strategy = strategy;
  return account(evaluate(request));
}

Bytes Composer::fullest(RankKind& kind) {
  passes_.clear();
  for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
    passes_.push_back(stages_[stage_of_[index(stage_of(shape_, kind.rank, chunk))]].activations);
  }
  if (all_alike(passes_)) return total(rank_activations(passes_, shape_, kind.rank).at_peak);
  ChunkGroups groups = chunk_groups(passes_);
  if (kind.moments == nullptr || kind.groups != groups) {
    const ScheduleShape shape = same_liveness(shape_);
    const auto [entry, added] =
        moments_.try_emplace({shape.ranks, shape.chunks, shape.microbatches, kind.rank, groups});
    if (added) entry->second = live_moments(groups, shape, kind.rank);
    kind.moments = &entry->second;
    kind.groups = std::move(groups);
  }
  return total(rank_activations(passes_, *kind.moments, kind.rank).at_peak);
}

RankPeak Composer::peak(const Strategy& strategy) {
  if (strategy.recompute.window) {
    const Plan plan = whole_plan(strategy);
    return {.rank = plan.peak_rank, .bytes = headroom::peak(plan)};
  }
  set_recompute(strategy);
  if (!filled_) {
    const ModelActivations& activations = activations_of(strategy);
    for (Stage& stage : stages_) {
      stage.activations = pass_activations(stage_activations(activations, stage.place, strategy.recompute));
    }
    for (RankKind& kind : kinds_) kind.activations = fullest(kind);
    filled_ = true;
  }
  RankPeak highest;
  for (const RankKind& kind : kinds_) {
    const Bytes bytes = kind.state[index(strategy.distributed_optimizer)] + kind.activations + reserved_;
    if (bytes > highest.bytes) highest = {.rank = index(kind.rank), .bytes = bytes};
  }
  return highest;
}

void Composer::time_layout() {
  if (layout_timed_) return;
  layout_timed_ = true;
  links_ = send_times(base_.model, layout_, base_.workload, base_.system.devices_per_node,
                      *base_.system.performance, base_.software);
  const ModelCost& cost = cost_of(layout_.recompute);
  for (Stage& stage : stages_) {
    stage.times =
        pass_times(stage_cost(cost, stage.place, {}), base_.system.performance->rates.host, base_.software);
  }
}

void Composer::fill_spans(const Recomputation& recompute, std::vector<ChunkSpans>& spans) {
  time_layout();
  const ModelCost& cost = cost_of(recompute);
  for (Stage& stage : stages_) {
    stage.times.replay = replay_time(stage_cost(cost, stage.place, recompute), stage.times.backward,
                                     base_.system.performance->rates.host, base_.software);
  }
  spans.clear();
  for (std::size_t i = 0; i < stage_of_.size(); ++i) {
    spans.push_back(chunk_spans(shape_, stages_[stage_of_[i]].times, links_, static_cast<std::int64_t>(i)));
  }
}

Seconds Composer::makespan_of(const Recomputation& recompute) {
  const std::size_t at_once = shape_.kind == ScheduleKind::interleaved ? most_at_once : 1;
  const auto asked = std::find(recomputations_.begin(), recomputations_.end(), recompute);
  if (at_once == 1 || asked == recomputations_.end()) {
    fill_spans(recompute, spans_.front());
    return makespan(shape_, spans_.front());
  }
  const auto first = index(asked - recomputations_.begin());
  if (makespans_[first]) return *makespans_[first];
  // Those that follow replay more and need less memory: where one is asked for, so will they be.
  std::array<std::size_t, most_at_once> places{};
  std::array<std::span<const ChunkSpans>, most_at_once> pipelines;
  std::size_t count = 0;
  for (std::size_t i = first; i < recomputations_.size() && count < at_once; ++i) {
    if (recomputations_[i].window) continue;
    fill_spans(recomputations_[i], spans_[count]);
    pipelines[count] = spans_[count];
    places[count++] = i;
  }
  std::array<Seconds, most_at_once> longest;
  makespans(shape_, std::span(pipelines).first(count), std::span(longest).first(count));
  for (std::size_t i = 0; i < count; ++i) makespans_[places[i]] = longest[i];
  return *makespans_[first];
}

EndTimes Composer::end_of(const Strategy& strategy, Seconds last_backward) const {
  double most = 0;
  for (const RankKind& kind : kinds_) most = std::max(most, kind.parameters);
  return end_times(base_.model, strategy, most, last_backward, base_.system.devices_per_node,
                   *base_.system.performance, base_.software);
}

const EndTimes& Composer::end_of(const Strategy& strategy) {
  std::optional<EndTimes>& end = ends_[index(strategy.distributed_optimizer)];
  if (!end) end = end_of(strategy, Seconds(0));
  return *end;
}

Seconds Composer::iteration(const Strategy& strategy) {
  // Where the reduction of gradients hides behind a backward pass, it matters which rank is busiest.
  const bool overlaps = base_.software.overlaps_data_parallel && strategy.data_parallel > 1;
  if (strategy.recompute.window || overlaps) return whole_plan(strategy).timing->iteration.total;
  set_recompute(strategy);
  if (!makespan_) makespan_ = makespan_of(strategy.recompute);
  const EndTimes& end = end_of(strategy);
  return *makespan_ + end.data_communication + end.optimizer;
}

Seconds Composer::least_iteration(const Strategy& strategy) {
  Strategy least = strategy;
  // A window stores at the most every pass.
  if (strategy.recompute.window) least.recompute = {};
  set_recompute(least);
  // As if a backward pass were long enough to hide the reduction of gradients as far as that goes.
  const EndTimes end = end_of(least, Seconds(std::numeric_limits<double>::infinity()));
  fill_spans(least.recompute, spans_.front());
  return least_makespan(shape_, spans_.front()) + end.data_communication + end.optimizer;
}

double Composer::mfu(const Strategy& strategy, Seconds iteration) const {
  return utilization(model_flops_, iteration, devices(strategy), base_.system.performance->device.half_peak);
}

}  // namespace headroom

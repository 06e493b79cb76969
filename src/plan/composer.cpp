#include "headroom/plan/composer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/legality.hpp"
#include "plan/account.hpp"

namespace headroom {

Composer::Composer(const Request& base) : base_(base), layers_(base), times_(base, layers_) {}

void Composer::set_layout(const Strategy& layout, std::span<const Recomputation> recomputations) {
  // Successive layouts often differ only in the batch.
  const bool same_stages = !stages_.of.empty() && layout.pipeline_parallel == layout_.pipeline_parallel &&
                           layout.virtual_pipeline == layout_.virtual_pipeline &&
                           layout.stage_layers == layout_.stage_layers &&
                           layout.schedule == layout_.schedule && same_layer_kinds(layout, layout_);
  layout_ = layout;
  devices_ = devices(layout);
  reserved_ = reserved(base_.system, base_.software, layout);
  const StackMemory& stack = base_.software.memory;
  workspaces_ = stack.workspaces.value_or(Bytes(0));
  if (any_experts(base_.model)) workspaces_ += stack.expert_workspaces.value_or(Bytes(0));
  layers_.select(layout);
  shape_ = schedule_shape(layout, microbatches(layout, base_.workload));
  if (!same_stages) {
    find_stages();
    find_rank_kinds();
  }
  find_states();
  kept_logits_ = logits_kept(layout);
  units_.reset();
  if (has_unit_bytes(layout, base_.workload, base_.software))
    units_ = model_units(layers_.layers(), layers_.parameters(), layout, base_.workload, base_.software);
  // All ranks wait for the rank that has the most parameters.
  const auto most = std::max_element(kinds_.begin(), kinds_.end(), [](const RankKind& x, const RankKind& y) {
    return total(x.parameters) < total(y.parameters);
  });
  times_.set(layout, shape_, stages_, most->parameters, most->matrices, recomputations);
  filled_.reset();
  ranks_asked_.reset();
}

void Composer::find_stages() {
  stages_.distinct.clear();
  stages_.of.clear();
  visit_stage_places(layers_.layers(), layout_, [&](const StagePlace& place) {
    const auto same = std::find(stages_.distinct.begin(), stages_.distinct.end(), place);
    stages_.of.push_back(index(same - stages_.distinct.begin()));
    if (same == stages_.distinct.end()) stages_.distinct.push_back(place);
  });
  activations_.resize(stages_.distinct.size());
}

void Composer::find_rank_kinds() {
  kinds_.clear();
  kind_of_.clear();
  const auto same = [&](std::int64_t x, std::int64_t y) {
    if (has_weight_passes(shape_)) return false;  // later ranks may hold more
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      if (stage(x, chunk) != stage(y, chunk)) return false;
    }
    return true;
  };
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    const auto known = std::find_if(kinds_.begin(), kinds_.end(),
                                    [&](const RankKind& kind) { return same(kind.rank, rank); });
    kind_of_.push_back(index(known - kinds_.begin()));
    if (known != kinds_.end()) continue;
    RankKind& kind = kinds_.emplace_back();
    kind.rank = rank;
    kind.groups.reserve(index(shape_.chunks));
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      const std::size_t held_stage = stage(rank, chunk);
      const StagePlace& place = stages_.distinct[held_stage];
      kind.layers += place.layers;
      kind.has_head = kind.has_head || place.last;
      kind.held = chunk == 0 ? place.of_kind : kind.held + place.of_kind;
      const auto group = std::find(kind.stages.begin(), kind.stages.end(), held_stage);
      kind.groups.push_back(index(group - kind.stages.begin()));
      if (group == kind.stages.end()) kind.stages.push_back(held_stage);
    }
  }
}

void Composer::find_states() {
  Strategy strategy = layout_;
  for (RankKind& kind : kinds_) {
    kind.moments = nullptr;
    kind.parameters = parameters_of_rank(layers_.parameters(), kind.held, holds_both_ends(shape_, kind.rank));
    kind.matrices = matrices_of_rank(layers_.parameters(), kind.held, holds_both_ends(shape_, kind.rank));
    kind.dummy_gradients = layers_.dummy_gradients(kind.held);
    for (const auto& [sharding, name] : spellings<DataSharding>) {
      const ShardingChoice other{sharding, layout_.shard_size, layout_.no_reshard_after_forward,
                                 layout_.sync_each_batch};
      if (!same_passes(other, sharding_choice(layout_), layout_, base_.software)) continue;
      strategy.data_sharding = sharding;
      const ModelState state = model_state(base_.model, strategy, base_.workload, kind.parameters,
                                           weight_copies(), base_.software, kind.matrices);
      kind.state[index(sharding)] = total(state);
      kind.on_host[index(sharding)] = state.on_host;
    }
  }
}

Bytes Composer::logits_kept(const Strategy& layout) const {
  if (!base_.software.memory.keeps_logits || layout.pipeline_parallel == 1) return Bytes(0);
  // The loss may save the logits of microbatches in flight. The last stage runs the backward pass of a
  // microbatch right after its forward pass, unless all forward passes come first.
  const bool all_first =
      layout.schedule == ScheduleKind::gpipe || layout.schedule == ScheduleKind::looped_bfs;
  const std::int64_t in_flight = !saves_logits(layers_.layers()) ? 0 : all_first ? shape_.microbatches : 1;
  return real(shape_.microbatches - in_flight) * layers_.logits();
}

int Composer::weight_copies() const {
  if (!base_.system.performance) return 2;
  return copies_of_factor(base_.system.performance->device, compute_dtype(layout_.precision));
}

std::size_t Composer::stage(std::int64_t rank, std::int64_t chunk) const {
  return stages_.of[index(stage_of(shape_, rank, chunk))];
}

void Composer::fill_activations(const Recomputation& recompute) {
  if (filled_ == recompute) return;
  filled_ = recompute;
  const Recomputation apart = set_apart(recompute, layout_.offload);
  const ModelActivations& activations = layers_.activations(recompute);
  for (std::size_t i = 0; i < activations_.size(); ++i) {
    set_stage_activations(scratch_, activations, stages_.distinct[i], apart);
    complete(scratch_, stages_.distinct[i], apart);
    activations_[i] = pass_activations(scratch_, shape_.in_pairs);
  }
  for (RankKind& kind : kinds_) {
    kind.activations = total(activations_of(kind, kind.rank).at_peak);
    kind.activations_on_host = activations_on_host(kind, kind.rank);
  }
}

Bytes Composer::activations_on_host(const RankKind& kind, std::int64_t rank) const {
  if (!offloads_activations(layout_.offload)) return Bytes(0);
  return headroom::activations_on_host(of_chunks(kind), shape_, rank);
}

std::vector<PassActivations> Composer::of_chunks(const RankKind& kind) const {
  std::vector<PassActivations> passes;
  passes.reserve(kind.groups.size());
  for (const std::size_t group : kind.groups) passes.push_back(activations_[kind.stages[group]]);
  return passes;
}

RankActivations Composer::activations_of(RankKind& kind, std::int64_t rank) {
  if (has_weight_passes(shape_)) return rank_activations(of_chunks(kind), shape_, rank);
  if (kind.stages.size() == 1) {
    return rank_activations(std::span(&activations_[kind.stages.front()], 1), shape_, rank);
  }
  if (rank == kind.rank && kind.moments == nullptr) kind.moments = &moments_of(kind.groups, rank);
  const std::vector<LiveMoment>& moments = rank == kind.rank ? *kind.moments : moments_of(kind.groups, rank);
  groups_.clear();
  for (const std::size_t stage : kind.stages) groups_.push_back(activations_[stage]);
  return rank_activations(groups_, moments, rank);
}

const std::vector<LiveMoment>& Composer::moments_of(const ChunkGroups& groups, std::int64_t rank) {
  const ScheduleShape shape = same_liveness(shape_);
  const auto [entry, added] = moments_.try_emplace({shape.kind, shape.in_pairs, shape.ranks, shape.chunks,
                                                    shape.microbatches, group_size(shape), rank, groups});
  if (added) entry->second = live_moments(groups, shape, rank);
  return entry->second;
}

std::vector<StageActivations> Composer::stage_activations_of(const Recomputation& recompute) {
  const ModelActivations& activations = layers_.activations(recompute);
  std::vector<StageActivations> stages;
  for (const std::size_t stage : stages_.of) {
    stages.push_back(stage_activations(activations, stages_.distinct[stage], recompute));
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
    RankKind& kind = kinds_[kind_of_[index(rank)]];
    RankMemory memory{.state = model_state(base_.model, strategy, base_.workload, kind.parameters,
                                           weight_copies(), base_.software, kind.matrices),
                      .dummy_gradients = kind.dummy_gradients,
                      .workspaces = workspaces_,
                      .reserved = reserved_};
    if (strategy.recompute.window) {
      const Bytes available = (1 - base_.margin) * base_.system.memory - total(memory) -
                              (kind.has_head ? kept_logits_ : Bytes(0));
      memory.window = largest_window(checkpointed, full, shape_, rank, available);
    }
    memory.activations = memory.window == 0
                             ? activations_of(kind, rank)
                             : rank_activations(checkpointed, full, memory.window, shape_, rank);
    memory.activations.layers = kind.layers;
    if (kind.has_head) {
      memory.activations.kept_logits = kept_logits_;
      memory.activations.at_peak.outputs += kept_logits_;
    }
    memory.activations_on_host = activations_on_host(kind, rank);
    ranks_.push_back(memory);
  }
  ranks_asked_ = strategy;
  return ranks_;
}

Bytes Composer::kept_by_stack(const RankKind& kind) const {
  return kind.dummy_gradients + workspaces_ + reserved_ + (kind.has_head ? kept_logits_ : Bytes(0));
}

RankPeak Composer::limited_by_host(std::size_t rank, Bytes bytes, Bytes on_host) const {
  if (on_host == Bytes(0) || !base_.system.host) return {.rank = rank, .bytes = bytes};
  const HostMemory host = host_memory(base_.system, devices_, on_host);
  if (!lacks(host)) return {.rank = rank, .bytes = bytes};
  return {.rank = rank,
          .bytes = std::max(bytes, base_.system.memory + (host.needed - host.available)),
          .of_host = true};
}

RankPeak Composer::peak(const Strategy& strategy) {
  if (strategy.recompute.window) {
    const std::vector<RankMemory>& ranks = ranks_of(strategy);
    const std::size_t rank = peak_rank(ranks);
    Bytes most_on_host;
    for (const RankMemory& one : ranks) most_on_host = std::max(most_on_host, on_host(one));
    return limited_by_host(rank, total(ranks[rank]), most_on_host);
  }
  fill_activations(strategy.recompute);
  RankPeak highest;
  for (const RankKind& kind : kinds_) {
    const std::size_t sharding = index(strategy.data_sharding);
    const Bytes held = kind.state[sharding] + kind.activations + kept_by_stack(kind);
    const RankPeak peak =
        limited_by_host(index(kind.rank), held, kind.on_host[sharding] + kind.activations_on_host);
    const bool of_host = highest.of_host || peak.of_host;
    if (peak.bytes > highest.bytes) highest = peak;
    highest.of_host = of_host;
  }
  return highest;
}

Bytes Composer::rank_total(std::int64_t rank, std::span<const PassActivations> passes) const {
  const RankKind& kind = kinds_[kind_of_[index(rank)]];
  const Bytes state = kind.state[index(layout_.data_sharding)];
  const Bytes held = state + total(rank_activations(passes, shape_, rank).at_peak) + kept_by_stack(kind);
  return limited_by_host(index(rank), held, kind.on_host[index(layout_.data_sharding)]).bytes;
}

Bytes Composer::rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers) {
  EXPECTS(shape_.chunks == 1 && !has_weight_passes(shape_));
  StagePlace& place = asked_place_;
  place = stages_.distinct[stage(rank, 0)];
  EXPECTS(place.runs.size() == 1 && layers >= 1);
  place.layers = layers;
  place.runs.front().count = layers;
  place.of_kind[place.runs.front().kind] = layers;
  return rank_total(strategy, rank, std::span(&place, 1));
}

Bytes Composer::rank_total(const Strategy& strategy, std::int64_t rank, std::span<const StagePlace> chunks) {
  EXPECTS(std::ssize(chunks) == shape_.chunks && !strategy.recompute.window);
  const ModelActivations& activations = layers_.activations(strategy.recompute);
  const Recomputation apart = set_apart(strategy.recompute, strategy.offload);
  std::vector<PassActivations> passes;
  KindCounts held;
  bool has_head = false;
  for (const StagePlace& place : chunks) {
    has_head = has_head || place.last;
    held = held.empty() ? place.of_kind : held + place.of_kind;
    set_stage_activations(scratch_, activations, place, apart);
    complete(scratch_, place, apart);
    passes.push_back(pass_activations(scratch_, shape_.in_pairs));
  }
  const bool both_ends = holds_both_ends(shape_, rank);
  const ModelState state = model_state(
      base_.model, strategy, base_.workload, parameters_of_rank(layers_.parameters(), held, both_ends),
      weight_copies(), base_.software, matrices_of_rank(layers_.parameters(), held, both_ends));
  const Bytes bytes = total(state) + total(rank_activations(passes, shape_, rank).at_peak) +
                      layers_.dummy_gradients(held) + workspaces_ + reserved_ +
                      (has_head ? kept_logits_ : Bytes(0));
  const Bytes away = state.on_host + headroom::activations_on_host(passes, shape_, rank);
  return limited_by_host(index(rank), bytes, away).bytes;
}

Seconds Composer::iteration(const Strategy& strategy) {
  // If collectives at the end overlap a pass, it matters which rank is busiest.
  if (strategy.recompute.window || hides_end(base_.software, strategy) || needs_replay(shape_)) {
    return iteration_time(strategy).total;
  }
  const EndTimes end = end_times(times_.end(strategy.data_sharding), {});
  return times_.makespan(strategy.recompute) + end.data_communication + end.optimizer;
}

Seconds Composer::least_iteration(const Strategy& strategy) {
  // A window saves at most every pass.
  const Recomputation least = strategy.recompute.window ? Recomputation{} : strategy.recompute;
  // Assumes passes long enough to hide the collectives at the end as far as possible.
  const Seconds forever(std::numeric_limits<double>::infinity());
  const EndTimes end = end_times(times_.end(strategy.data_sharding), {forever, forever});
  return times_.least_makespan(least) + end.data_communication + end.optimizer;
}

Seconds Composer::iteration(std::span<const StageCost> stages) { return times_.iteration(stages).total; }

IterationTime Composer::iteration_time(const Strategy& strategy) {
  std::vector<std::int64_t> windows;
  if (strategy.recompute.window) {
    for (const RankMemory& rank : ranks_of(strategy)) windows.push_back(rank.window);
  }
  return times_.iteration(strategy, std::move(windows));
}

Timing Composer::timing_of(const Strategy& strategy) {
  Timing timing{.iteration = iteration_time(strategy)};
  timing.flops =
      iteration_flops(base_.model, layers_.layers(), strategy, base_.workload,
                      recomputed_parts(layers_.layers(), strategy, shape_, timing.iteration.schedule));
  timing.throughput = throughput(timing.flops, timing.iteration.total, strategy, base_.workload,
                                 base_.system.performance->device);
  return timing;
}

double Composer::mfu(Seconds iteration) {
  if (!model_flops_) {
    model_flops_ = iteration_flops(base_.model, layers_.layers(), base_.workload).model_causal;
  }
  const Dtype dtype = compute_dtype(layout_.precision);
  return utilization(*model_flops_, iteration, devices_, peak_of(base_.system.performance->device, dtype));
}

Evaluation Composer::evaluate(const Strategy& strategy) {
  const Asked question = asked(base_, strategy, &known_layers());
  if (std::vector<Problem> problems = problems_of(question, all_rules); !problems.empty()) {
    throw InputError(std::move(problems));
  }
  set_layout(strategy);
  Plan plan{.request = base_, .layers = {layers_.shared_layers()}, .ranks = ranks_of(strategy)};
  plan.request.strategy = strategy;
  plan.peak_rank = peak_rank(plan.ranks);
  bool reduction_within_fit = true;
  if (base_.system.performance) {
    plan.timing = timing_of(strategy);
    reduction_within_fit = times_.end(strategy.data_sharding).replicas.within_fit;
  }
  plan.assumptions = assumptions_of(base_.system, base_.software, strategy);
  plan.warnings = warnings_of(plan, layers_.activations(strategy.recompute), counts_of(layers_.layers()),
                              reduction_within_fit);
  plan.verdict = verdict_of(base_, headroom::peak(plan));
  if (base_.system.host && offloads(strategy.offload)) {
    Bytes most;
    for (const RankMemory& rank : plan.ranks) most = std::max(most, on_host(rank));
    plan.host = host_memory(base_.system, devices_, most);
    if (lacks(*plan.host)) {
      plan.verdict = Verdict::does_not_fit;
      const HostMemory host = *plan.host;
      return Infeasible{.attempt = std::move(plan),
                        .limit = "host_memory",
                        .needed = host.needed,
                        .available = host.available};
    }
  }
  if (plan.verdict != Verdict::does_not_fit) return plan;
  const Bytes needed = headroom::peak(plan);
  return Infeasible{.attempt = std::move(plan),
                    .limit = "device_memory",
                    .needed = needed,
                    .available = base_.system.memory};
}

}  // namespace headroom

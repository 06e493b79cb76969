#include "headroom/plan/composer.hpp"

#include <algorithm>

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

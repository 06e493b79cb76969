// The memory questions of a composer.
#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/plan/composer.hpp"
#include "plan/account.hpp"

namespace headroom {

void Composer::set_recompute(const Recomputation& recompute) {
  if (recompute_ == recompute) return;
  recompute_ = recompute;
  filled_ = false;
  makespan_.reset();
}

void Composer::fill_activations(const Recomputation& recompute) {
  set_recompute(recompute);
  if (filled_) return;
  const ModelActivations& activations = activations_of(recompute);
  for (Stage& stage : stages_) {
    stage.activations = pass_activations(stage_activations(activations, stage.place, recompute));
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
  const std::span<const PassActivations> passes = passes_of(kind.rank);
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
  const ModelActivations& activations = activations_of(recompute);
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

}  // namespace headroom

#include "headroom/schedule/order.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/schedule/building_block.hpp"

namespace headroom {

std::int64_t warm_up_passes(const ScheduleShape& shape, std::int64_t rank) {
  EXPECTS(rank >= 0 && rank < shape.ranks);
  EXPECTS(shape.chunks == 1 || shape.kind == ScheduleKind::looped_bfs ||
          (shape.kind == ScheduleKind::interleaved &&
           is_group_size(group_size(shape), shape.ranks, shape.microbatches)));
  const std::int64_t passes = shape.microbatches * shape.chunks;
  const std::int64_t ranks_after = shape.ranks - rank - 1;
  const std::int64_t beside = shape.in_pairs ? 1 : 0;
  switch (shape.kind) {
    case ScheduleKind::gpipe:
    case ScheduleKind::looped_bfs: return passes;
    case ScheduleKind::one_forward_one_backward: return std::min(passes, ranks_after + beside);
    case ScheduleKind::zero_bubble_h1: return std::min(passes, ranks_after);
    case ScheduleKind::zero_bubble_h2: return std::min(passes, 2 * ranks_after);
    case ScheduleKind::zero_bubble_2p: return std::min(passes, 2 * ranks_after + 1);
    case ScheduleKind::interleaved:
      // Two passes for each rank after this one, and a group for each chunk before the last, need to be under
      // way.
      return std::min(passes, 2 * ranks_after + (shape.chunks - 1) * group_size(shape) + beside);
    case ScheduleKind::zero_bubble_v:
    case ScheduleKind::v_half:
    case ScheduleKind::v_min:
    case ScheduleKind::dualpipe_v:
    case ScheduleKind::dualpipe: break;
  }
  EXPECTS(!"a schedule that runs in rounds");
  return 0;
}

std::optional<ScheduleShape> laid_out(const ScheduleShape& shape) {
  if (shape.kind != ScheduleKind::v_half && shape.kind != ScheduleKind::v_min) return std::nullopt;
  const std::int64_t alike = BuildingBlocks::all_alike_from(shape.ranks);
  return ScheduleShape{
      .kind = shape.kind, .ranks = shape.ranks, .microbatches = std::min(shape.microbatches, alike)};
}

PipelineOrder::PipelineOrder(const ScheduleShape& shape) : shape_(shape) {
  if (const auto all = laid_out(shape))
    blocks_ = std::make_shared<const BuildingBlocks>(all->kind, all->ranks, all->microbatches);
}

PipelineOrder::PipelineOrder(const ScheduleShape& shape, const PipelineOrder& other)
    : shape_(shape), blocks_(other.blocks_) {
  EXPECTS(laid_out(shape) == laid_out(other.shape_));
}

RankOrder PipelineOrder::of(std::int64_t rank) const {
  const ScheduleShape& shape = shape_;
  switch (shape.kind) {
    case ScheduleKind::zero_bubble_v:
      return {.rounds = zero_bubble_v_rounds(shape.ranks, shape.microbatches, rank)};
    case ScheduleKind::v_half:
    case ScheduleKind::v_min: return {.rounds = blocks_->rounds(rank, shape.microbatches)};
    case ScheduleKind::dualpipe_v: return {.rounds = dualpipe_rounds(shape.ranks, shape.microbatches, rank)};
    case ScheduleKind::dualpipe:
      return {.rounds = dualpipe_rounds(shape.ranks / 2, shape.microbatches / 2,
                                        std::min(rank, shape.ranks - 1 - rank))};
    case ScheduleKind::zero_bubble_h1:
      return {.ahead = warm_up_passes(shape, rank), .deferred = rank, .rounds = {}};
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::zero_bubble_2p:
      return {.ahead = warm_up_passes(shape, rank), .deferred = 2 * rank, .rounds = {}};
    case ScheduleKind::gpipe:
    case ScheduleKind::one_forward_one_backward:
    case ScheduleKind::interleaved:
    case ScheduleKind::looped_bfs: break;
  }
  return {.ahead = warm_up_passes(shape, rank), .rounds = {}};
}

ScheduleShape schedule_shape(const Strategy& strategy, std::int64_t microbatches) {
  return {.kind = strategy.schedule,
          .ranks = strategy.pipeline_parallel,
          .chunks = strategy.virtual_pipeline * model_copies(strategy.schedule),
          .microbatches = microbatches,
          .group = strategy.microbatch_group_size,
          .in_pairs = strategy.overlap_expert_all_to_all};
}

KindCounts kinds_of_rank(const std::vector<StagePlace>& places, const ScheduleShape& shape,
                         std::int64_t rank) {
  KindCounts held = places[index(stage_of(shape, rank, 0))].of_kind;
  for (std::int64_t chunk = 1; chunk < shape.chunks; ++chunk) {
    held = held + places[index(stage_of(shape, rank, chunk))].of_kind;
  }
  return held;
}

std::vector<Step> steps_of_rank(const PipelineOrder& order, std::int64_t rank) {
  std::vector<Step> steps;
  visit_steps(order, rank, [&](const Step& step) { steps.push_back(step); });
  return steps;
}

ScheduleShape same_liveness(const ScheduleShape& shape) {
  ScheduleShape cut = shape;
  switch (shape.kind) {
    case ScheduleKind::gpipe:
    case ScheduleKind::looped_bfs: return shape;
    case ScheduleKind::zero_bubble_v:
    case ScheduleKind::v_half:
    case ScheduleKind::v_min:
    case ScheduleKind::dualpipe_v:
    case ScheduleKind::dualpipe:
      // Rounds cover 2 p microbatches, except for one round, which takes another turn for each further
      // microbatch.
      cut.microbatches = std::min(shape.microbatches, 2 * shape.ranks + 4);
      return cut;
    case ScheduleKind::one_forward_one_backward:
    case ScheduleKind::interleaved:
    case ScheduleKind::zero_bubble_h1:
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::zero_bubble_2p: break;
  }
  // Warm-up and cool-down each take fewer than two groups. One group lies between them, and the remainder
  // that forms the last group stays.
  const std::int64_t group = group_size(shape);
  const std::int64_t left = shape.chunks > 1 ? shape.microbatches % group : 0;
  cut.microbatches = std::min(shape.microbatches, 5 * group + left);
  return cut;
}

PipelineOrder same_liveness(const PipelineOrder& order) {
  const ScheduleShape cut = same_liveness(order.shape());
  return laid_out(cut) == laid_out(order.shape()) ? PipelineOrder(cut, order) : PipelineOrder(cut);
}

std::int64_t chunks_in_flight(const ScheduleShape& shape, std::int64_t rank) {
  std::int64_t alive = 0;
  std::int64_t most = 0;
  visit_steps(PipelineOrder(same_liveness(shape)), rank, [&](const Step& step) {
    if (step.pass == Pass::backward_weight) return;
    alive += step.pass == Pass::forward ? 1 : -1;
    most = std::max(most, alive);
  });
  return most;
}

}  // namespace headroom

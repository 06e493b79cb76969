#include "headroom/schedule/order.hpp"

#include <algorithm>

namespace headroom {
std::int64_t warm_up_passes(const ScheduleShape& shape, std::int64_t rank) {
  EXPECTS(rank >= 0 && rank < shape.ranks);
  EXPECTS(shape.chunks == 1 || (shape.kind == ScheduleKind::interleaved &&
                                is_group_size(group_size(shape), shape.ranks, shape.microbatches)));
  const std::int64_t passes = shape.microbatches * shape.chunks;
  const std::int64_t ranks_after = shape.ranks - rank - 1;
  switch (shape.kind) {
    case ScheduleKind::gpipe: return passes;
    case ScheduleKind::one_forward_one_backward:
    case ScheduleKind::zero_bubble_h1: return std::min(passes, ranks_after);
    case ScheduleKind::interleaved:
      // Twice the ranks after this one, and the chunks before the last, need to be under way.
      return std::min(passes, 2 * ranks_after + (shape.chunks - 1) * group_size(shape));
  }
  EXPECTS(!"unknown schedule");
  return 0;
}

RankOrder order_of(const ScheduleShape& shape, std::int64_t rank) {
  return {.ahead = warm_up_passes(shape, rank), .deferred = deferred_weight_passes(shape, rank)};
}

ScheduleShape schedule_shape(const Strategy& strategy, std::int64_t microbatches) {
  return {.kind = strategy.schedule,
          .ranks = strategy.pipeline_parallel,
          .chunks = strategy.virtual_pipeline,
          .microbatches = microbatches,
          .group = strategy.microbatch_group_size};
}

std::vector<Step> steps_of_rank(const ScheduleShape& shape, std::int64_t rank) {
  std::vector<Step> steps;
  visit_steps(shape, rank, [&](const Step& step) { steps.push_back(step); });
  return steps;
}

ScheduleShape same_liveness(const ScheduleShape& shape) {
  if (shape.kind == ScheduleKind::gpipe) return shape;
  ScheduleShape cut = shape;
  // Warm-up and cool-down take fewer than two groups each at the most; one lies between, and what is left for the last
  // group stays.
  const std::int64_t group = group_size(shape);
  const std::int64_t left = shape.chunks > 1 ? shape.microbatches % group : 0;
  cut.microbatches = std::min(shape.microbatches, 5 * group + left);
  return cut;
}

std::int64_t chunks_in_flight(const ScheduleShape& shape, std::int64_t rank) {
  std::int64_t alive = 0;
  std::int64_t most = 0;
  visit_steps(same_liveness(shape), rank, [&](const Step& step) {
    if (step.pass == Pass::backward_weight) return;
    alive += step.pass == Pass::forward ? 1 : -1;
    most = std::max(most, alive);
  });
  return most;
}

}  // namespace headroom

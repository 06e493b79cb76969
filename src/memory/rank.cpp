#include "headroom/memory/rank.hpp"

#include <algorithm>

namespace headroom {
namespace {

RankActivations at_peak(const std::vector<PassActivations>& checkpointed,
                        const std::vector<PassActivations>& full, std::int64_t window,
                        const ScheduleShape& shape, std::int64_t rank) {
  RankActivations result{.pipeline_rank = rank};
  std::int64_t alive = 0;
  Bytes highest(-1);
  visit_activations(checkpointed, full, window, shape, rank, [&](const StepActivations& moment) {
    alive += moment.step.pass == Pass::forward ? 1 : -1;
    result.chunks_in_flight = std::max(result.chunks_in_flight, alive);
    if (total(moment.highest) <= highest) return;
    highest = total(moment.highest);
    result.at_peak = moment.highest;
    result.peak = moment.step;
  });
  return result;
}

}  // namespace

RankActivations rank_activations(const std::vector<StageActivations>& stages, const ScheduleShape& shape,
                                 std::int64_t rank) {
  const std::vector<PassActivations> passes = pass_activations(stages, shape, rank);
  return at_peak(passes, passes, 0, same_liveness(shape), rank);
}

RankActivations rank_activations(const std::vector<StageActivations>& checkpointed,
                                 const std::vector<StageActivations>& full, std::int64_t window,
                                 const ScheduleShape& shape, std::int64_t rank) {
  // Which passes are stored need not repeat with the period of the schedule, so no shape is cut down here.
  return at_peak(pass_activations(checkpointed, shape, rank), pass_activations(full, shape, rank), window,
                 shape, rank);
}

std::int64_t largest_window(const std::vector<StageActivations>& checkpointed,
                            const std::vector<StageActivations>& full, const ScheduleShape& shape,
                            std::int64_t rank, Bytes available) {
  const std::vector<PassActivations> few = pass_activations(checkpointed, shape, rank);
  const std::vector<PassActivations> all = pass_activations(full, shape, rank);
  std::int64_t window = chunks_in_flight(shape, rank);
  // The warm-up stores that many at once, so they cannot take more than there is.
  const auto smallest = std::min_element(
      all.begin(), all.end(), [](const auto& x, const auto& y) { return total(x.left) < total(y.left); });
  if (const double most = available / total(smallest->left); most < static_cast<double>(window)) {
    window = std::max<std::int64_t>(0, static_cast<std::int64_t>(most));
  }
  // From above: a larger window may need less, where what it stores is less than a replay's working set.
  while (window > 0 && total(at_peak(few, all, window, shape, rank).at_peak) > available) --window;
  return window;
}

}  // namespace headroom

#include "headroom/memory/rank.hpp"

#include <algorithm>

namespace headroom {
namespace {

RankActivations peak_of_alike(const PassActivations& pass, const ScheduleShape& shape, std::int64_t rank) {
  const std::int64_t passes = shape.microbatches * shape.chunks;
  const std::int64_t alive = std::min(passes, warm_up_passes(shape, rank) + 1);
  RankActivations result{.pipeline_rank = rank,
                         .chunks_in_flight = alive,
                         .at_peak = static_cast<double>(alive) * pass.left,
                         .peak = pass_of_rank(shape, Pass::forward, alive - 1)};
  if (total(pass.excess) > Bytes(0)) {
    result.at_peak = result.at_peak + pass.excess;
    result.peak = pass_of_rank(shape, Pass::backward, 0);
  }
  return result;
}

// Follows the schedule by bytes alone, and puts the parts together for the highest moment only.
RankActivations peak_of_mixed(std::span<const PassActivations> passes, const ScheduleShape& shape,
                              std::int64_t rank) {
  struct Chunk {
    std::int64_t alive = 0;
    Bytes left;
    Bytes excess;
  };
  std::vector<Chunk> chunks;
  for (const PassActivations& pass : passes) {
    chunks.push_back({.left = total(pass.left), .excess = total(pass.excess)});
  }
  RankActivations result{.pipeline_rank = rank};
  std::vector<Chunk> highest_chunks;
  Bytes highest(-1);
  Bytes now;
  std::int64_t alive = 0;
  visit_steps(shape, rank, [&](const Step& step) {
    Chunk& chunk = chunks[static_cast<std::size_t>(step.chunk)];
    const bool forward = step.pass == Pass::forward;
    const Bytes at_worst = forward ? now + chunk.left : now + chunk.excess;
    if (forward) {
      ++chunk.alive;
      result.chunks_in_flight = std::max(result.chunks_in_flight, ++alive);
    }
    if (at_worst > highest) {
      highest = at_worst;
      highest_chunks = chunks;
      result.peak = step;
    }
    now = forward ? at_worst : now - chunk.left;
    if (!forward) {
      --chunk.alive;
      --alive;
    }
  });
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    result.at_peak = result.at_peak + static_cast<double>(highest_chunks[i].alive) * passes[i].left;
  }
  if (result.peak.pass == Pass::backward) {
    result.at_peak = result.at_peak + passes[static_cast<std::size_t>(result.peak.chunk)].excess;
  }
  return result;
}

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
  return rank_activations(pass_activations(stages, shape, rank), shape, rank);
}

RankActivations rank_activations(std::span<const PassActivations> passes, const ScheduleShape& shape,
                                 std::int64_t rank) {
  const PassActivations& first = passes.front();
  const bool alike =
      std::all_of(passes.begin(), passes.end(), [&](const auto& pass) { return pass == first; });
  if (alike) return peak_of_alike(first, shape, rank);
  return peak_of_mixed(passes, same_liveness(shape), rank);
}

RankActivations rank_activations(const std::vector<StageActivations>& checkpointed,
                                 const std::vector<StageActivations>& full, std::int64_t window,
                                 const ScheduleShape& shape, std::int64_t rank) {
  if (window == 0) return rank_activations(checkpointed, shape, rank);
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

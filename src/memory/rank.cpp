#include "headroom/memory/rank.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

namespace headroom {
namespace {

RankActivations peak_of_alike(const PassActivations& pass, const ScheduleShape& shape, std::int64_t rank) {
  const std::int64_t passes = shape.microbatches * shape.chunks;
  const std::int64_t alive = std::min(passes, warm_up_passes(shape, rank) + 1);
  RankActivations result{.pipeline_rank = rank,
                         .chunks_in_flight = alive,
                         .at_peak = static_cast<double>(alive) * pass.left,
                         .grown_gradients = pass.left.absent_gradients,
                         .peak = pass_of_rank(shape, Pass::forward, alive - 1)};
  if (shape.in_pairs && passes > warm_up_passes(shape, rank)) {
    // The last pass in flight arrives layer by layer as the first one leaves.
    result.at_peak = static_cast<double>(alive - 1) * pass.left + pass.paired_excess;
    result.peak = pass_of_rank(shape, Pass::backward, 0);
    result.during = pass.paired_during;
  } else if (total(pass.excess) > Bytes(0)) {
    result.at_peak = result.at_peak + pass.excess;
    result.peak = pass_of_rank(shape, Pass::backward, 0);
    result.during = pass.during;
  }
  return result;
}

bool at_least(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), std::greater_equal());
}

Activations at_moment(std::span<const PassActivations> groups, const LiveMoment& moment) {
  Activations sum;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (moment.alive[i] > 0) sum = sum + static_cast<double>(moment.alive[i]) * groups[i].left;
  }
  if (moment.step.pass == Pass::forward) return sum;
  const PassActivations& pass = groups[moment.group];
  return sum + (moment.beside ? excess_beside(pass, groups[*moment.beside]) : pass.excess);
}

RankActivations at_peak(const std::vector<PassActivations>& checkpointed,
                        const std::vector<PassActivations>& full, std::int64_t window,
                        const PipelineOrder& order, std::int64_t rank) {
  RankActivations result{.pipeline_rank = rank};
  std::int64_t alive = 0;
  Bytes highest(-1);
  constexpr Walk walk = Walk::without_repetitions;
  visit_activations(checkpointed, full, window, order, rank, walk, [&](const StepActivations& moment) {
    if (moment.step.pass != Pass::backward_weight) alive += moment.step.pass == Pass::forward ? 1 : -1;
    result.chunks_in_flight = std::max(result.chunks_in_flight, alive);
    if (total(moment.highest) <= highest) return;
    highest = total(moment.highest);
    result.at_peak = moment.highest;
    result.peak = moment.step;
    result.during = moment.during;
  });
  return result;
}

// Returns the window if its peak is within `available`. Otherwise returns the next smaller one that may be.
// Windows that hold all passes saved in full up to the moment that is too much save the same passes until then.
// In the warm-up, smaller windows save the first of these passes in full, and checkpoints of the rest.
std::int64_t largest_that_may_fit(const std::vector<PassActivations>& checkpointed,
                                  const std::vector<PassActivations>& full, std::int64_t window,
                                  const ScheduleShape& shape, std::int64_t rank, Bytes available) {
  Bytes of_pass;  // the most that a pass saved in full takes beyond its checkpoints
  for (std::size_t chunk = 0; chunk < full.size(); ++chunk)
    of_pass = std::max(of_pass, total(full[chunk].left) - total(checkpointed[chunk].left));
  bool fits = true;
  bool warm = false;
  std::int64_t stored = 0;
  std::int64_t most_stored = 0;
  double too_many = 1;  // passes saved in full, at least, at the moment that is too much
  constexpr Walk walk = Walk::without_repetitions;
  visit_activations(checkpointed, full, window, shape, rank, walk, [&](const StepActivations& moment) {
    if (!fits) return;
    if (moment.stored) stored += moment.step.pass == Pass::forward ? 1 : -1;
    most_stored = std::max(most_stored, stored);
    warm = warm || moment.step.pass != Pass::forward;
    fits = total(moment.highest) <= available;
    constexpr double rounding = 1e-6;
    if (!fits && !warm && of_pass > Bytes(0))
      too_many = std::max(too_many, (total(moment.highest) - available) / of_pass - rounding);
  });
  if (fits) return window;
  return too_many < static_cast<double>(most_stored)
             ? most_stored - static_cast<std::int64_t>(std::ceil(too_many))
             : 0;
}

}  // namespace

RankActivations rank_activations(const std::vector<StageActivations>& stages, const ScheduleShape& shape,
                                 std::int64_t rank) {
  return rank_activations(pass_activations(stages, shape, rank), shape, rank);
}

RankActivations rank_activations(std::span<const PassActivations> passes, const PipelineOrder& order,
                                 std::int64_t rank) {
  const ScheduleShape& shape = order.shape();
  if (has_weight_passes(shape)) {
    EXPECTS(std::ssize(passes) == shape.chunks);
    const std::vector<PassActivations> all(passes.begin(), passes.end());
    return at_peak(all, all, 0, same_liveness(order), rank);
  }
  if (passes.size() == 1) return peak_of_alike(passes.front(), shape, rank);
  std::vector<PassActivations> groups;
  ChunkGroups group_of;
  for (const PassActivations& pass : passes) {
    const auto known = std::find(groups.begin(), groups.end(), pass);
    group_of.push_back(static_cast<std::size_t>(known - groups.begin()));
    if (known == groups.end()) groups.push_back(pass);
  }
  if (groups.size() == 1) return peak_of_alike(groups.front(), shape, rank);
  return rank_activations(groups, live_moments(group_of, shape, rank), rank);
}

Bytes activations_on_host(const std::vector<PassActivations>& of_chunks, const PipelineOrder& order,
                          std::int64_t rank) {
  std::vector<PassActivations> held(of_chunks.size());
  Bytes sum;
  for (std::size_t i = 0; i < of_chunks.size(); ++i) sum += held[i].left.layers = of_chunks[i].on_host;
  return sum == Bytes(0) ? sum : total(rank_activations(held, order, rank).at_peak);
}

std::vector<LiveMoment> live_moments(const ChunkGroups& groups, const ScheduleShape& shape,
                                     std::int64_t rank) {
  EXPECTS(!has_weight_passes(shape));
  std::vector<LiveMoment> moments;
  std::vector<std::int64_t> alive(*std::max_element(groups.begin(), groups.end()) + 1);
  std::optional<std::size_t> beside;  // group of the forward pass in progress
  const auto look_at = [&](const Step& step) {
    const std::size_t group = groups[static_cast<std::size_t>(step.chunk)];
    const auto comparable = [&](const LiveMoment& moment) {
      return moment.step.pass == step.pass && moment.beside == beside &&
             (step.pass == Pass::forward || moment.group == group);
    };
    const bool outdone = std::any_of(moments.begin(), moments.end(), [&](const LiveMoment& moment) {
      return comparable(moment) && at_least(moment.alive, alive);
    });
    if (outdone) return;
    std::erase_if(moments, [&](const LiveMoment& moment) {
      return comparable(moment) && at_least(alive, moment.alive);
    });
    moments.push_back({step, group, beside, alive});
  };
  // Of consecutive forward passes, only the last can be the peak.
  std::optional<Step> last_forward;
  visit_steps(PipelineOrder(same_liveness(shape)), rank, [&](const Step& step) {
    const std::size_t group = groups[static_cast<std::size_t>(step.chunk)];
    if (shape.in_pairs && step.beside && step.pass == Pass::forward) {
      beside = group;
      return;
    }
    if (step.pass == Pass::forward) {
      ++alive[group];
      last_forward = step;
      return;
    }
    if (last_forward) look_at(*last_forward);
    last_forward.reset();
    look_at(step);
    --alive[group];
    if (beside) ++alive[*std::exchange(beside, std::nullopt)];
  });
  return moments;
}

RankActivations rank_activations(std::span<const PassActivations> groups, std::span<const LiveMoment> moments,
                                 std::int64_t rank) {
  RankActivations result{.pipeline_rank = rank};
  Bytes highest(-1);
  for (const LiveMoment& moment : moments) {
    const std::int64_t alive = std::accumulate(moment.alive.begin(), moment.alive.end(), std::int64_t{0});
    result.chunks_in_flight = std::max(result.chunks_in_flight, alive + (moment.beside ? 1 : 0));
    const Activations activations = at_moment(groups, moment);
    if (total(activations) <= highest) continue;
    highest = total(activations);
    result.at_peak = activations;
    result.peak = moment.step;
    const PassActivations& pass = groups[moment.group];
    result.during = moment.beside                        ? pass.paired_during
                    : moment.step.pass == Pass::backward ? pass.during
                                                         : OpPlace{};
  }
  return result;
}

RankActivations rank_activations(const std::vector<StageActivations>& checkpointed,
                                 const std::vector<StageActivations>& full, std::int64_t window,
                                 const ScheduleShape& shape, std::int64_t rank) {
  if (window == 0) return rank_activations(checkpointed, shape, rank);
  return at_peak(pass_activations(checkpointed, shape, rank), pass_activations(full, shape, rank), window,
                 shape, rank);
}

std::int64_t largest_window(const std::vector<StageActivations>& checkpointed,
                            const std::vector<StageActivations>& full, const ScheduleShape& shape,
                            std::int64_t rank, Bytes available) {
  const std::vector<PassActivations> few = pass_activations(checkpointed, shape, rank);
  const std::vector<PassActivations> all = pass_activations(full, shape, rank);
  std::int64_t window = chunks_in_flight(shape, rank);
  // The warm-up saves that many passes at once, so they cannot take more than is available.
  const auto smallest = std::min_element(
      all.begin(), all.end(), [](const auto& x, const auto& y) { return total(x.left) < total(y.left); });
  if (const double most = available / total(smallest->left); most < static_cast<double>(window)) {
    window = std::max<std::int64_t>(0, static_cast<std::int64_t>(most));
  }
  // Searches from above: a larger window may need less memory if its saved activations are smaller than a
  // recomputation's working set.
  for (std::int64_t next = 0; window > 0; window = next) {
    next = largest_that_may_fit(few, all, window, shape, rank, available);
    if (next == window) break;
  }
  return window;
}

}  // namespace headroom

#include "headroom/search/feasibility.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/iteration_flops.hpp"
#include "headroom/search/offload_choices.hpp"

namespace headroom {
template <class Enough>
bool Feasibility::any_layout(const Space& space, Enough enough) const {
  bool found = false;
  visit_layouts(
      base_, space,
      [&](const Strategy& layout) {
        if (stops(watch_)) return false;
        found = enough(layout);
        return !found;
      },
      [](const Problem&) {});
  return found;
}

namespace {

// Returns whether some strategies reduce gradients to shards virtual stage by virtual stage.
bool may_reduce_by_group(const Request& base, const Space& space) {
  const StackSharding& sharding = base.software.sharding;
  return sharding.with_pipeline && contains(sharding.modes, DataSharding::zero2) &&
         (space.data_sharding.empty() || contains(space.data_sharding, DataSharding::zero2));
}

// Returns whether strategies with a single microbatch may hold fewer gradients at the peak.
bool may_grow_gradients(const Request& base, const Space& space) {
  return base.software.memory.frees_gradients && allows(space.pipeline_parallel, 1);
}

}  // namespace

Space leanest(const Request& base, const Space& space) {
  Space lean = space;
  lean.recompute_layers = false;
  if (space.no_reshard_after_forward != std::vector{true}) lean.no_reshard_after_forward = {false};
  if (allows(space.micro_batch, 1) && !may_grow_gradients(base, space)) lean.micro_batch = {.only = {1}};
  constexpr ScheduleKind f1b1 = ScheduleKind::one_forward_one_backward;
  if (allows(space.virtual_pipeline, 1) && contains(space.schedules, f1b1) &&
      !may_reduce_by_group(base, space)) {
    lean.virtual_pipeline = {.only = {1}};
    lean.schedules = {f1b1};
  }
  return lean;
}

Bytes least_state(const Request& base) {
  Strategy whole = base.strategy;
  whole.data_sharding = DataSharding::zero3;  // of one rank: a shard that is all
  whole.data_parallel = whole.context_parallel = 1;
  Parameters parameters = parameter_count(base.model);
  // Assumes narrow weights everywhere, since they take fewer bytes than 16-bit ones.
  if (whole.fp8_param_gather) parameters.narrow_dense = parameters.dense;
  const int copies = base.system.performance
                         ? copies_of_factor(base.system.performance->device, compute_dtype(whole.precision))
                         : 2;
  // Assumes that all weights are frozen, in as few bits as possible.
  if (trains_adapters(whole.lora)) parameters.frozen_dense = parameters.dense;
  if (is_quantized(whole.lora.base)) parameters.quantized_dense = parameters.dense;
  // One square matrix has the fewest rows and columns.
  const double side = std::sqrt(total(parameters));
  const ModelState state = model_state(base.model, whole, base.workload, parameters, copies, base.software,
                                       {{.rows = side, .columns = side, .count = 1}});
  return state.weights + state.gradients + state.optimizer;
}

namespace {

// Returns the lower bound for the request's precision.
std::int64_t devices_lower_bound(const Request& base, std::optional<Seconds> within) {
  const Bytes available =
      (1 - base.margin) * base.system.memory - reserved(base.system, base.software, Strategy{});
  double bound = std::max(1.0, least_state(base) / available);
  if (within) {
    const Flops flops =
        iteration_flops(base.model, layers_of(base.model, base.strategy), base.workload).model_causal;
    bound =
        std::max(bound, flops / *within /
                            peak_of(base.system.performance->device, compute_dtype(base.strategy.precision)));
  }
  return bound < real(most_count) ? static_cast<std::int64_t>(std::ceil(bound)) : most_count;
}

}  // namespace

std::int64_t devices_lower_bound(const Request& base, const Space& space, std::optional<Seconds> within) {
  Request request = base;
  std::int64_t least = most_count;
  for (const Precision precision : precisions_of(base, space)) {
    request.strategy.precision = precision;
    for (const Offload& offload : offload_choices(base, space)) {
      request.strategy.offload = offload;
      least = std::min(least, devices_lower_bound(request, within));
    }
  }
  return least;
}

namespace {

// Returns leanest(), extended by choices that may place fewer heavy layers on a rank.
Space leanest_of(const Request& base, const Space& space) {
  Space lean = leanest(base, space);
  const bool kinds = !base.model.layer_kinds.empty() || has_bf16_layers(base.strategy.precision_scope);
  if (kinds) {  // interleaved, a rank may hold fewer of the heavy ones
    lean.virtual_pipeline = space.virtual_pipeline;
    lean.schedules = space.schedules;
  }
  return lean;
}

}  // namespace

std::optional<Strategy> Feasibility::fitting_layout(const Space& space) {
  const Space lean = leanest_of(base_, space);
  LayersByMemory by_memory(base_, lean);
  std::optional<Strategy> found;
  any_layout(lean, [&](const Strategy& layout) {
    if (fits(layout, lean, by_memory)) found = layout;
    return found.has_value();
  });
  return found;
}

std::optional<Strategy> Feasibility::fitting_strategy(const Space& space) {
  const std::optional<Strategy> layout = fitting_layout(space);
  return layout ? leanest_strategy(*layout, space) : std::nullopt;
}

std::optional<Strategy> Feasibility::fitting_strategy(const Space& space, std::span<const Strategy> layouts) {
  const Space lean = leanest_of(base_, space);
  const Counts context = context_parallel_of(base_, space);
  LayersByMemory by_memory(base_, lean);
  for (const Strategy& layout : layouts) {
    if (stops(watch_)) break;
    if (allows(context, layout.context_parallel) && is_legal_layout(base_, layout) &&
        fits(layout, lean, by_memory))
      return leanest_strategy(layout, space);
  }
  return std::nullopt;
}

// Returns the strategy of a layout that fits with the least memory.
std::optional<Strategy> Feasibility::leanest_strategy(const Strategy& layout, const Space& space) {
  const Space lean = leanest_of(base_, space);
  LayersByMemory by_memory(base_, lean);
  const bool placed = by_memory.applies(layout);
  std::optional<Strategy> least;
  Bytes least_peak;
  for (const ShardingChoice& sharding : sharding_choices(base_, lean, layout)) {
    Strategy strategy = with_sharding(layout, sharding);
    const Layout balanced = composer_.layout(strategy);
    for (const Recomputation& recompute : hopeful(balanced, strategy, lean, by_memory)) {
      strategy.recompute = recompute;
      std::optional<Strategy> fitting = strategy;
      if (!fits(balanced, strategy))
        fitting = placed && !recompute.window ? by_memory.fitting(balanced, strategy) : std::nullopt;
      if (!fitting) continue;
      const Bytes peak = composer_.layout(*fitting).peak(*fitting).bytes;
      if (!least || peak < least_peak) {
        least = std::move(fitting);
        least_peak = peak;
      }
    }
  }
  return least;
}

std::vector<Strategy> Feasibility::fitting_layouts(const Space& space) {
  const Space lean = leanest_of(base_, space);
  LayersByMemory by_memory(base_, lean);
  std::vector<Strategy> found;
  any_layout(lean, [&](const Strategy& layout) {
    if (fits(layout, lean, by_memory)) found.push_back(layout);
    return false;
  });
  return found;
}

std::vector<Strategy> Feasibility::fitting_of(const Space& space, std::span<const Strategy> layouts) {
  const Space lean = leanest_of(base_, space);
  LayersByMemory by_memory(base_, lean);
  std::vector<Strategy> found;
  for (const Strategy& layout : layouts) {
    if (stops(watch_)) break;
    if (is_legal_layout(base_, layout) && fits(layout, lean, by_memory)) found.push_back(layout);
  }
  return found;
}

std::vector<Recomputation> Feasibility::hopeful(const Layout& balanced, Strategy strategy, const Space& space,
                                                LayersByMemory& by_memory) const {
  strategy.recompute = {};
  const bool may_fit = verdict_of(base_, balanced.least_peak(strategy)) == Verdict::fits ||
                       (by_memory.applies(strategy) && by_memory.may_fit(balanced, strategy));
  std::vector<Recomputation> list = recomputations(base_, space, strategy);
  std::erase_if(list, [&](const Recomputation& recompute) {
    strategy.recompute = recompute;
    return !(may_fit || recompute.window) || !may_recompute(base_, strategy);
  });
  return list;
}

bool Feasibility::fits(const Strategy& layout, const Space& lean, LayersByMemory& by_memory) {
  const bool placed = by_memory.applies(layout);
  const std::vector<ShardingChoice> choices = sharding_choices(base_, lean, layout);
  for (const ShardingChoice& sharding : choices) {
    if (sharding == ShardingChoice{} && choices.size() > 1) continue;  // the others hold less
    Strategy strategy = with_sharding(layout, sharding);
    const Layout balanced = composer_.layout(strategy);
    for (const Recomputation& recompute : hopeful(balanced, strategy, lean, by_memory)) {
      strategy.recompute = recompute;
      if (fits(balanced, strategy)) return true;
      if (placed && !recompute.window && by_memory.fitting(balanced, strategy)) return true;
    }
  }
  return false;
}

bool Feasibility::fits_within(const Space& space, Seconds most) {
  LayersByMemory by_memory(base_, space);
  return any_layout(space,
                    [&](const Strategy& layout) { return fits_within(layout, space, by_memory, most); });
}

bool Feasibility::fits_within(const Strategy& layout, const Space& space, LayersByMemory& by_memory,
                              Seconds most) {
  const bool placed = by_memory.applies(layout);
  for (const ShardingChoice& sharding : sharding_choices(base_, space, layout)) {
    Strategy strategy = with_sharding(layout, sharding);
    const Layout balanced = composer_.layout(strategy);
    std::vector<Strategy> too_large;
    // Recomputation adds time: if the layout is too slow without it, no policy helps.
    const bool in_time = balanced.least_iteration(strategy) <= most;
    if (!in_time && !placed) continue;
    for (const Recomputation& recompute : hopeful(balanced, strategy, space, by_memory)) {
      strategy.recompute = recompute;
      if (!fits(balanced, strategy)) {
        if (placed && !recompute.window) too_large.push_back(strategy);
      } else if (in_time && balanced.least_iteration(strategy) <= most &&
                 balanced.iteration(strategy) <= most) {
        return true;
      }
    }
    for (const LayersByMemory::Placed& other : by_memory.fitting(balanced, too_large)) {
      if (composer_.layout(other.strategy).iteration(other.strategy) <= most) return true;
    }
  }
  return false;
}

}  // namespace headroom

#include "headroom/answer/routing.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/counts.hpp"
#include "headroom/plan/allocator_use.hpp"

namespace headroom {
namespace {

constexpr std::size_t draws = 64;
constexpr std::int64_t default_steps = 1000;

// Returns the experts of the kind of layers that has the most of them, and the layers with experts of a
// pipeline rank.
RoutedExperts routed_experts(const Plan& plan) {
  const Request& request = plan.request;
  RoutedExperts routed{.ranks = request.strategy.expert_parallel};
  std::int64_t layers = request.model.layers;
  const auto consider = [&](const Architecture& architecture) {
    if (architecture.experts && architecture.experts->count > routed.experts.count)
      routed.experts = *architecture.experts;
  };
  consider(request.model.architecture);
  if (!request.model.layer_kinds.empty()) {
    std::vector<bool> has;
    for (const LayerDescription& kind : request.model.layer_kinds) {
      consider(kind.architecture);
      has.push_back(kind.architecture.experts.has_value());
    }
    layers = 0;
    for (const LayerRun& run : request.model.layer_runs) layers += has[run.kind] ? run.count : 0;
  }
  const std::int64_t ranks = request.strategy.pipeline_parallel;
  routed.layers = std::max<std::int64_t>((layers + ranks - 1) / ranks, 1);
  routed.in_flight =
      real(plan.ranks[plan.peak_rank].activations.chunks_in_flight) / real(request.strategy.virtual_pipeline);
  routed.tokens = real(request.strategy.expert_parallel) * real(request.strategy.micro_batch) *
                  real(request.workload.sequence) /
                  real(request.strategy.tensor_parallel * request.strategy.context_parallel);
  return routed;
}

Request at_load(const Request& request, double load) {
  Request loaded = request;
  loaded.workload.moe_imbalance.factor = load;
  loaded.workload.moe_imbalance.load = ExpertLoad::balanced;
  return loaded;
}

LoadedPlan loaded_plan(const Plan& plan, double quantile, double memory_load, double time_load) {
  LoadedPlan loaded{.quantile = quantile, .memory_load = memory_load, .time_load = time_load};
  const auto take_time = [&](const Plan& timed) {
    if (timed.timing) loaded.iteration = timed.timing->iteration.total;
  };
  if (is_even(plan.request.workload.moe_imbalance) && memory_load == 1 && time_load == 1) {
    loaded.peak = peak(plan);
    loaded.verdict = plan.verdict;
    take_time(plan);
    return loaded;
  }
  const Evaluation evaluation = evaluate(at_load(plan.request, memory_load));
  loaded.peak = peak(account(evaluation));
  loaded.verdict = settled_verdict(evaluation);
  take_time(account(evaluate(at_load(plan.request, time_load))));
  return loaded;
}

std::int64_t steps_of(const Training& training, const Workload& workload) {
  if (training.tokens <= 0) return default_steps;
  const double steps = std::ceil(training.tokens / (real(workload.global_batch) * real(workload.sequence)));
  return static_cast<std::int64_t>(std::clamp(steps, 1.0, 1e9));
}

// Returns the load at which the plan runs out of memory. Memory grows in proportion to the load.
std::optional<double> load_that_fits(const Plan& plan, const LoadedPlan& even, const LoadedPlan& loaded) {
  const double growth = (loaded.peak - even.peak).count() / (loaded.memory_load - 1);
  if (loaded.memory_load <= 1 || growth <= 0) return std::nullopt;
  const Bytes held = held_bytes(plan).value_or(peak(plan));
  const Bytes beside = held - peak(plan);  // what the allocator holds beside tensors
  return 1 + (plan.request.system.memory - even.peak - beside).count() / growth;
}

}  // namespace

std::optional<Routing> routing_of(const Plan& plan, const Training& training) {
  const Request& request = plan.request;
  const Strategy& strategy = request.strategy;
  if (strategy.expert_parallel == 1 || !any_experts(request.model) || strategy.moe_pad_to_capacity)
    return std::nullopt;
  RoutedExperts routed = routed_experts(plan);
  Routing routing{.balancing = request.workload.moe_imbalance.balancing,
                  .layers = routed.layers,
                  .steps = steps_of(training, request.workload),
                  .loads = {}};
  const auto drawn = [&](MoeBalancing balancing) {
    routed.spread = routing_spread(balancing, request.model.hidden);
    return drawn_loads(routed, draws);
  };
  const std::vector<DrawnLoads> loads = drawn(routing.balancing);
  routing.loads.push_back(loaded_plan(plan, 0, 1, 1));
  for (const double quantile : {0.5, 0.9}) {
    routing.loads.push_back(loaded_plan(plan, quantile, load_quantile(loads, &DrawnLoads::memory, quantile),
                                        load_quantile(loads, &DrawnLoads::time, quantile)));
  }
  const std::optional<double> limit = load_that_fits(plan, routing.loads.front(), routing.loads.back());
  if (!limit) return routing;
  const double periods = std::max(real(routing.steps) / real(drift_steps), 1.0);
  routing.out_of_memory = chance_above(loads, &DrawnLoads::memory, *limit, periods);
  routing.out_of_memory_early = chance_above(drawn(MoeBalancing::none), &DrawnLoads::memory, *limit, 1);
  return routing;
}

}  // namespace headroom

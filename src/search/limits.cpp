#include "headroom/search/limits.hpp"

#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/changes.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/find_held.hpp"

namespace headroom {

std::optional<BlockedChange> blocked_by_memory(const Plan& plan) {
  std::optional<BlockedChange> fastest;
  Composer composer(plan.request);
  for (const Edits& change : changes_on_same_devices(plan.request)) {
    const Strategy strategy = changed(plan.request, change).strategy;
    if (devices(strategy) != devices(plan.request.strategy) ||
        !illegalities(plan.request, strategy).empty() || !launchable(plan.request, strategy)) {
      continue;
    }
    composer.set_layout(strategy);
    const Seconds iteration = composer.iteration(strategy);
    if (iteration >= (fastest ? fastest->iteration : plan.timing->iteration.total)) continue;
    const RankPeak peak = composer.peak(strategy);
    Bytes needed = peak.bytes;
    if (verdict_of(plan.request, needed) != Verdict::does_not_fit) {
      // The tensors have room. Whether PyTorch's reserved memory has room is known only after following the
      // allocator.
      const std::optional<Bytes> held = held_bytes(account(settled(composer.evaluate(strategy))));
      if (!held || *held <= plan.request.system.memory) continue;
      needed = *held;
    }
    fastest = BlockedChange{change, iteration, needed - plan.request.system.memory, peak.of_host};
  }
  return fastest;
}

std::optional<NarrowerPlan> in_fp8(const Plan& plan) {
  const Request& request = plan.request;
  if (is_narrow(request.strategy.precision)) return std::nullopt;
  std::optional<NarrowerPlan> fastest;
  Composer composer(request);
  for (const Precision precision : {Precision::fp8, Precision::fp8_blockwise, Precision::mxfp8}) {
    Strategy strategy = request.strategy;
    strategy.precision = precision;
    if (!illegalities(request, strategy).empty()) continue;
    composer.set_layout(strategy);
    const Seconds iteration = composer.iteration(strategy);
    if (iteration >= (fastest ? fastest->iteration : plan.timing->iteration.total)) continue;
    const Bytes peak = composer.peak(strategy).bytes;
    fastest = NarrowerPlan{precision, iteration, peak, verdict_of(plan.request, peak)};
  }
  if (fastest) {
    Request narrower = request;
    narrower.strategy.precision = fastest->precision;
    fastest->verdict = account(settled(evaluate(narrower))).verdict;
  }
  return fastest;
}

std::vector<Found> relief(const Request& base, const Space& space) {
  const std::int64_t batch = base.workload.global_batch;
  const std::int64_t sequence = base.workload.sequence;
  // Lengths that suit kernels, if there is room for them.
  const std::int64_t step = sequence > usual_sequence_step ? usual_sequence_step : 1;
  const auto found = [&](const Question& question) { return find_held(base, space, question); };
  return {found({.extreme = Extreme::min_devices, .most = usual_most_devices}),
          found({.extreme = Extreme::max_batch, .most = batch - 1}),
          found({.extreme = Extreme::max_sequence, .step = step, .most = sequence - 1})};
}

}  // namespace headroom

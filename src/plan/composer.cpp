#include "headroom/plan/composer.hpp"

#include <algorithm>
#include <utility>

#include "headroom/parallel/legality.hpp"
#include "plan/account.hpp"
#include "plan/composed_parts.hpp"

namespace headroom {

Composer::Composer(const Request& base) : parts_(std::make_unique<ComposedParts>(base)) {}
Composer::~Composer() = default;

Layout Composer::layout(const Strategy& strategy, std::span<const Recomputation> recomputations) {
  return {*parts_, strategy, recomputations};
}

KnownLayers& Composer::known_layers() { return parts_->layers.known_layers(); }

Evaluation Composer::evaluate(const Strategy& strategy) {
  const Request& base = parts_->base;
  const Asked question = asked(base, strategy, &known_layers());
  if (std::vector<Problem> problems = problems_of(question, all_rules); !problems.empty()) {
    throw InputError(std::move(problems));
  }
  const Layout placed = layout(strategy);
  const PricedLayers& layers = placed.layers();
  Plan plan{.request = base, .layers = {layers.shared_layers()}, .ranks = placed.ranks(strategy)};
  plan.request.strategy = strategy;
  plan.peak_rank = peak_rank(plan.ranks);
  bool reduction_within_fit = true;
  if (base.system.performance) {
    plan.timing = placed.timing(strategy);
    reduction_within_fit = placed.end_within_fit(strategy);
  }
  plan.assumptions = assumptions_of(base.system, base.software, strategy);
  plan.warnings = warnings_of(plan, layers.activations(strategy.recompute), counts_of(layers.layers()),
                              reduction_within_fit);
  plan.verdict = verdict_of(base, headroom::peak(plan));
  if (base.system.host && offloads(strategy.offload)) {
    Bytes most;
    for (const RankMemory& rank : plan.ranks) most = std::max(most, on_host(rank));
    plan.host = host_memory(base.system, devices(strategy), most);
    if (lacks(*plan.host)) {
      plan.verdict = Verdict::does_not_fit;
      const HostMemory host = *plan.host;
      return Infeasible{.attempt = std::move(plan),
                        .limit = "host_memory",
                        .needed = host.needed,
                        .available = host.available};
    }
  }
  if (plan.verdict != Verdict::does_not_fit) return plan;
  const Bytes needed = headroom::peak(plan);
  return Infeasible{.attempt = std::move(plan),
                    .limit = "device_memory",
                    .needed = needed,
                    .available = base.system.memory};
}

}  // namespace headroom

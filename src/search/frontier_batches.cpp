#include "headroom/search/frontier_batches.hpp"

#include "headroom/core/counts.hpp"

namespace headroom {
std::vector<BatchChoice> batch_choices(const Request& request, Bytes budget, const Watch& watch) {
  std::vector<BatchChoice> choices;
  const std::int64_t replica = request.workload.global_batch / request.strategy.data_parallel;
  for (const std::int64_t b : divisors(replica)) {
    if (stops(watch)) break;
    tell(watch, "microbatch of", b);
    Request asked = request;
    asked.strategy.micro_batch = b;
    asked.strategy.recompute = {};
    if (!illegalities(asked, asked.strategy).empty()) continue;
    const Frontier frontier(asked);
    BatchChoice choice{.micro_batch = b, .selective = frontier.point({.policy = RecomputePolicy::selective})};
    const std::vector<FrontierPoint> front = frontier.uniform(watch);
    if (const FrontierPoint* point = within(front, budget)) choice.uniform = *point;
    choice.staged = frontier.staged(budget);
    if (stops(watch)) break;
    const bool fits = choice.staged.has_value();
    choices.push_back(std::move(choice));
    if (!fits) break;
  }
  return choices;
}

}  // namespace headroom

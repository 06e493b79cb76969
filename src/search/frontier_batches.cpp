#include "headroom/search/frontier_batches.hpp"

#include <algorithm>

namespace headroom {
namespace {

// In order. In steps of the root, since a batch may count to billions.
std::vector<std::int64_t> divisors(std::int64_t value) {
  std::vector<std::int64_t> result;
  for (std::int64_t low = 1; low <= value / low; ++low) {
    if (value % low != 0) continue;
    result.push_back(low);
    if (value / low != low) result.push_back(value / low);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

std::vector<BatchChoice> batch_choices(const Request& request, Bytes budget) {
  std::vector<BatchChoice> choices;
  const std::int64_t replica = request.workload.global_batch / request.strategy.data_parallel;
  for (const std::int64_t b : divisors(replica)) {
    Request asked = request;
    asked.strategy.micro_batch = b;
    asked.strategy.recompute = {};
    if (!illegalities(asked.model, asked.strategy, asked.workload).empty()) continue;
    const Frontier frontier(asked);
    BatchChoice choice{.micro_batch = b, .selective = frontier.point({.policy = RecomputePolicy::selective})};
    const std::vector<FrontierPoint> front = frontier.uniform();
    if (const FrontierPoint* point = within(front, budget)) choice.uniform = *point;
    choice.staged = frontier.staged(budget);
    const bool fits = choice.staged.has_value();
    choices.push_back(std::move(choice));
    if (!fits) break;
  }
  return choices;
}

}  // namespace headroom

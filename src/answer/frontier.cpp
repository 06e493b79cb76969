#include "headroom/answer/frontier.hpp"

#include <algorithm>

namespace headroom {
namespace {

// The fastest microbatch with all ranks alike; of those as fast the smallest.
std::optional<std::size_t> fastest_of(const std::vector<BatchChoice>& batches) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::optional<FrontierPoint>& uniform = batches[i].uniform;
    if (uniform && (!best || uniform->iteration < batches[*best].uniform->iteration)) best = i;
  }
  return best;
}

}  // namespace

std::vector<std::size_t> best_exchanges(const std::vector<FrontierRow>& points) {
  std::vector<std::size_t> hull;
  // Whether the middle one lies above the line between the others: bytes fall and seconds rise along the front.
  const auto above_line = [&](std::size_t a, std::size_t b, std::size_t c) {
    const FrontierPoint& x = points[a].point;
    const FrontierPoint& y = points[b].point;
    const FrontierPoint& z = points[c].point;
    return (y.iteration - x.iteration).count() * (x.peak - z.peak).count() >=
           (z.iteration - x.iteration).count() * (x.peak - y.peak).count();
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].point.recompute.layers > 0) continue;
    while (hull.size() > 1 && above_line(hull[hull.size() - 2], hull.back(), i)) hull.pop_back();
    hull.push_back(i);
  }
  return hull;
}

FrontierReply answer(const FrontierQuestion& question, const Watch& watch) {
  tell(watch, "pricing sets of ops");
  const Frontier frontier(question.request);
  FrontierReply reply{.request = frontier.request(),
                      .layers = frontier.layers(),
                      .fronts = frontier.layer_fronts(),
                      .combinations = frontier.choices().size()};
  const std::vector<FrontierPoint> front = frontier.uniform(watch);
  const auto best_within = [&](Bytes budget) {
    FrontierBudget best{.budget = budget, .uniform = {}, .staged = frontier.staged(budget)};
    if (const FrontierPoint* point = within(front, budget)) best.uniform = *point;
    return best;
  };
  for (const FrontierPoint& point : front) reply.points.push_back({point, *frontier.staged(point.peak)});
  reply.exchanges = best_exchanges(reply.points);
  for (const RecomputePolicy policy :
       {RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full}) {
    const FrontierPoint point = frontier.point({.policy = policy});
    reply.policies.push_back({point, best_within(point.peak)});
  }
  std::vector<Bytes> budgets = question.budgets;
  if (budgets.empty()) budgets.push_back(question.request.system.memory);
  for (const Bytes budget : budgets) {
    reply.budgets.push_back(best_within(budget));
    if (question.window) reply.budgets.back().windowed = frontier.windowed(budget, watch);
  }
  reply.batches = batch_choices(question.request, budgets.front(), watch);
  reply.fastest = fastest_of(reply.batches);
  reply.stopped = stops(watch);
  return reply;
}

bool fits(const FrontierReply& reply) {
  return std::any_of(reply.budgets.begin(), reply.budgets.end(),
                     [](const FrontierBudget& budget) { return budget.staged.has_value(); });
}

}  // namespace headroom

#include "headroom/plan/remedies.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

namespace headroom {
namespace {

// The plan of a request, if it is legal and fits.
std::optional<Plan> fitting_plan(const Request& request) {
  if (!illegalities(request.model, request.strategy, request.workload).empty()) return std::nullopt;
  Evaluation evaluation = evaluate(request);
  if (auto* plan = std::get_if<Plan>(&evaluation)) return std::move(*plan);
  return std::nullopt;
}

// Sets of at most `left` changes that fit, from those at or after `from`. None goes on from one that fits with more
// than a margin.
void try_sets(const Request& base, const std::vector<Edits>& changes, std::size_t from, std::size_t left,
              const std::vector<Edits>& made, std::vector<Alternative>& found) {
  if (left == 0) return;
  for (std::size_t i = from; i < changes.size(); ++i) {
    const Request request = changed(base, changes[i]);
    if (request == base) continue;
    std::vector<Edits> all = made;
    all.push_back(changes[i]);
    std::optional<Plan> plan = fitting_plan(request);
    const bool at_ease = plan && plan->verdict == Verdict::fits;
    if (plan) found.push_back({.changes = all, .plan = std::move(*plan)});
    if (!at_ease) try_sets(request, changes, i + 1, left - 1, all, found);
  }
}

// Drops every set that holds a whole other one of no worse verdict: it has a change that it could do without.
void keep_smallest(std::vector<Alternative>& found) {
  const auto holds = [](const Alternative& x, const Alternative& y) {
    return x.changes.size() > y.changes.size() && y.plan.verdict <= x.plan.verdict &&
           std::all_of(y.changes.begin(), y.changes.end(), [&](const Edits& change) {
             return std::find(x.changes.begin(), x.changes.end(), change) != x.changes.end();
           });
  };
  std::vector<Alternative> smallest;
  for (const Alternative& candidate : found) {
    const bool larger = std::any_of(found.begin(), found.end(),
                                    [&](const Alternative& other) { return holds(candidate, other); });
    if (!larger) smallest.push_back(candidate);
  }
  found = std::move(smallest);
}

Seconds iteration_of(const Plan& plan) { return plan.timing ? plan.timing->iteration.total : Seconds(0); }

bool faster(const Alternative& x, const Alternative& y) {
  return iteration_of(x.plan) < iteration_of(y.plan);
}

}  // namespace

std::vector<Alternative> remedies(const Request& request, std::size_t most) {
  std::vector<Edits> changes = changes_on_same_devices(request);
  std::vector<Alternative> found;
  try_sets(request, changes, 0, 2, {}, found);
  if (found.empty()) {
    for (Edits& change : changes_to_more_devices(request)) changes.push_back(std::move(change));
    try_sets(request, changes, 0, 3, {}, found);
  }
  keep_smallest(found);
  // The sets come in the order of the changes, which a stable sort keeps among equals.
  const auto merit = [](const Alternative& x) {
    return std::tuple(devices(x.plan.request.strategy), x.plan.verdict, iteration_of(x.plan),
                      x.changes.size());
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Alternative& x, const Alternative& y) { return merit(x) < merit(y); });
  if (found.size() > most) found.resize(most);
  return found;
}

std::vector<Alternative> improvements(const Plan& plan, std::size_t most) {
  if (!plan.timing) return {};
  const std::vector<Edits> changes = changes_on_same_devices(plan.request);
  constexpr double worth_a_change = 0.999;
  const Seconds bound = worth_a_change * iteration_of(plan);
  const auto better = [&](const Request& request) -> std::optional<Plan> {
    std::optional<Plan> candidate = fitting_plan(request);
    const bool good = candidate && devices(request.strategy) == devices(plan.request.strategy) &&
                      candidate->verdict <= plan.verdict && iteration_of(*candidate) < bound;
    return good ? std::move(candidate) : std::nullopt;
  };

  std::vector<Alternative> found;
  for (const Edits& change : changes) {
    if (std::optional<Plan> candidate = better(changed(plan.request, change))) {
      found.push_back({.changes = {change}, .plan = std::move(*candidate)});
    }
  }
  std::stable_sort(found.begin(), found.end(), faster);

  // What a second change adds to the best single ones.
  constexpr std::size_t most_extended = 4;
  const std::size_t singles = std::min(found.size(), most_extended);
  for (std::size_t i = 0; i < singles; ++i) {
    for (const Edits& change : changes) {
      const Request twice = changed(found[i].plan.request, change);
      const Request alone = changed(plan.request, change);
      if (twice == alone || twice == found[i].plan.request) continue;  // one of the two does nothing
      if (std::optional<Plan> candidate = better(twice)) {
        found.push_back({.changes = {found[i].changes.front(), change}, .plan = std::move(*candidate)});
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), faster);
  // Neighbours of the best share its first change and say little more.
  std::vector<Alternative> distinct;
  for (Alternative& candidate : found) {
    const bool seen = std::any_of(distinct.begin(), distinct.end(), [&](const Alternative& other) {
      return other.changes.front() == candidate.changes.front();
    });
    if (!seen && distinct.size() < most) distinct.push_back(std::move(candidate));
  }
  return distinct;
}

}  // namespace headroom

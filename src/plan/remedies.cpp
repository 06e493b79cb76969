#include "headroom/plan/remedies.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/composer.hpp"

namespace headroom {
namespace {

// Strategy that fits, and the changes that lead to it.
struct Fitting {
  std::vector<Edits> changes;
  Strategy strategy;
  Bytes peak;
  Verdict verdict = Verdict::fits;
  Seconds iteration;  // 0 if times are unknown
};

// Returns whether two strategies are equal, or differ only in fields without effect.
bool same_account(const Fitting& x, const Fitting& y) {
  return x.strategy == y.strategy ||
         (x.peak == y.peak && x.iteration == y.iteration && x.iteration > Seconds(0));
}

// Queries one composer for all changes of a request.
class Trial {
 public:
  explicit Trial(const Request& base) : base_(base), composer_(base) {}

  // Returns the strategy if it uses all GPUs, is legal, can be launched and fits.
  std::optional<Fitting> fitting(const Strategy& strategy) {
    if (!can_replace(base_, strategy, &composer_.known_layers())) return std::nullopt;
    const Layout layout = composer_.layout(strategy);
    const Bytes peak = layout.peak(strategy).bytes;
    const Verdict verdict = verdict_of(base_, peak);
    if (verdict == Verdict::does_not_fit) return std::nullopt;
    return Fitting{.changes = {},
                   .strategy = strategy,
                   .peak = peak,
                   .verdict = verdict,
                   .iteration = base_.system.performance ? layout.iteration(strategy) : Seconds(0)};
  }

  // Returns the first strategies whose verdict PyTorch's allocator does not change; if there are none, those
  // that it makes marginal.
  std::vector<Alternative> alternatives(const std::vector<Fitting>& found, std::size_t most) {
    constexpr std::size_t most_settled = 16;
    std::vector<Alternative> result;
    std::vector<Alternative> marginal;
    for (std::size_t i = 0; i < std::min(found.size(), most_settled) && result.size() < most; ++i) {
      Evaluation evaluation = composer_.evaluate(found[i].strategy);
      auto* const plan = std::get_if<Plan>(&evaluation);
      if (plan == nullptr) continue;
      plan->verdict = settled_verdict(evaluation);
      if (plan->verdict == Verdict::does_not_fit) continue;
      std::vector<Alternative>& list = plan->verdict == found[i].verdict ? result : marginal;
      list.push_back({.changes = found[i].changes, .plan = std::move(*plan)});
    }
    if (result.empty()) result = std::move(marginal);
    if (result.size() > most) result.resize(most);
    return result;
  }

 private:
  const Request& base_;
  Composer composer_;
};

// Tries sets of at most `left` changes, from changes at or after `from`. A set that fits with more than the
// margin is not extended.
void try_sets(Trial& trial, const Request& base, const std::vector<Edits>& changes, std::size_t from,
              std::size_t left, const std::vector<Edits>& made, std::vector<Fitting>& found) {
  if (left == 0) return;
  for (std::size_t i = from; i < changes.size(); ++i) {
    const Request request = changed(base, changes[i]);
    if (request == base) continue;
    std::vector<Edits> all = made;
    all.push_back(changes[i]);
    std::optional<Fitting> fit = trial.fitting(request.strategy);
    const bool at_ease = fit && fit->verdict == Verdict::fits;
    if (fit) {
      fit->changes = all;
      found.push_back(std::move(*fit));
    }
    if (!at_ease) try_sets(trial, request, changes, i + 1, left - 1, all, found);
  }
}

// Drops every set that contains another set with a verdict as good: the set has a change that it could do
// without.
void keep_smallest(std::vector<Fitting>& found) {
  const auto holds = [](const Fitting& x, const Fitting& y) {
    return x.changes.size() > y.changes.size() && y.verdict <= x.verdict &&
           std::all_of(y.changes.begin(), y.changes.end(), [&](const Edits& change) {
             return std::find(x.changes.begin(), x.changes.end(), change) != x.changes.end();
           });
  };
  std::vector<Fitting> smallest;
  for (const Fitting& fit : found) {
    const bool larger =
        std::any_of(found.begin(), found.end(), [&](const Fitting& other) { return holds(fit, other); });
    if (!larger) smallest.push_back(fit);
  }
  found = std::move(smallest);
}

// Keeps the set with the fewest changes among sets with the same result.
void keep_distinct(std::vector<Fitting>& found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Fitting& x, const Fitting& y) { return x.changes.size() < y.changes.size(); });
  std::vector<Fitting> distinct;
  for (Fitting& fit : found) {
    const bool seen = std::any_of(distinct.begin(), distinct.end(),
                                  [&](const Fitting& other) { return same_account(fit, other); });
    if (!seen) distinct.push_back(std::move(fit));
  }
  found = std::move(distinct);
}

bool quicker(const Fitting& x, const Fitting& y) { return x.iteration < y.iteration; }

}  // namespace

std::vector<Alternative> remedies(const Request& request, std::size_t most) {
  Trial trial(request);
  std::vector<Fitting> found;
  std::vector<Edits> changes = changes_on_same_devices(request);
  try_sets(trial, request, changes, 0, 2, {}, found);
  if (found.empty()) {
    for (Edits& change : changes_of_state(request)) changes.push_back(std::move(change));
    try_sets(trial, request, changes, 0, 2, {}, found);
  }
  if (found.empty()) {  // offloading is the last resort
    for (Edits& change : changes_of_offloading(request)) changes.push_back(std::move(change));
    try_sets(trial, request, changes, 0, 2, {}, found);
  }
  keep_smallest(found);
  keep_distinct(found);
  // A stable sort keeps the order of the changes among equals.
  const auto merit = [](const Fitting& x) { return std::tuple(x.verdict, x.iteration, x.changes.size()); };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Fitting& x, const Fitting& y) { return merit(x) < merit(y); });
  return trial.alternatives(found, most);
}

std::vector<Alternative> improvements(const Plan& plan, std::size_t most) {
  if (!plan.timing) return {};
  Trial trial(plan.request);
  const std::vector<Edits> changes = changes_on_same_devices(plan.request);
  constexpr double worth_a_change = 0.999;
  const Seconds bound = worth_a_change * plan.timing->iteration.total;
  const auto better = [&](const Request& request) -> std::optional<Fitting> {
    std::optional<Fitting> fit = trial.fitting(request.strategy);
    const bool good = fit && fit->verdict <= plan.verdict && fit->iteration < bound;
    return good ? std::move(fit) : std::nullopt;
  };

  std::vector<Fitting> found;
  for (const Edits& change : changes) {
    if (std::optional<Fitting> fit = better(changed(plan.request, change))) {
      fit->changes = {change};
      found.push_back(std::move(*fit));
    }
  }
  std::stable_sort(found.begin(), found.end(), quicker);

  // Number of best single changes that a second change extends.
  constexpr std::size_t most_extended = 4;
  const std::size_t singles = std::min(found.size(), most_extended);
  for (std::size_t i = 0; i < singles; ++i) {
    Request first = plan.request;
    first.strategy = found[i].strategy;
    for (const Edits& change : changes) {
      const Request twice = changed(first, change);
      if (twice == changed(plan.request, change) || twice == first) continue;  // one of the two has no effect
      if (std::optional<Fitting> fit = better(twice)) {
        fit->changes = {found[i].changes.front(), change};
        found.push_back(std::move(*fit));
      }
    }
  }
  keep_distinct(found);
  std::stable_sort(found.begin(), found.end(), quicker);
  // Neighbours of the best share its first change and add little information.
  std::vector<Fitting> distinct;
  for (Fitting& fit : found) {
    const bool seen = std::any_of(distinct.begin(), distinct.end(), [&](const Fitting& other) {
      return other.changes.front() == fit.changes.front();
    });
    if (!seen && distinct.size() < most) distinct.push_back(std::move(fit));
  }
  return trial.alternatives(distinct, most);
}

}  // namespace headroom

#include "headroom/search/confirm.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "headroom/core/contains.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/search/widen.hpp"
#include "search/best_found.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

constexpr std::string_view confirming = "confirming plans";

// A changed candidate keeps the place of its origin, so the time tells them apart.
using Known = std::tuple<std::size_t, std::int64_t, Seconds>;
Known known(const Candidate& candidate) { return {candidate.variant, candidate.place, candidate.iteration}; }

Candidate settled_in(const Searched& of, Candidate candidate) {
  candidate = settled_candidate(of.base, std::move(candidate));
  if (contains(of.space.ran_out, candidate.strategy)) candidate.verdict = Verdict::does_not_fit;
  return candidate;
}

// Returns what PyTorch holds with expandable segments.
Bytes grown(const Request& base, const Candidate& candidate) {
  Request request = base;
  request.strategy = candidate.strategy;
  const Evaluation evaluation = settled(evaluate(request));
  const Plan& plan = account(evaluation);
  return plan.allocator ? plan.allocator->expandable + plan.ranks[plan.allocator->rank].reserved : peak(plan);
}

// Settles the candidates on several threads; fewer if the watch stops it.
std::map<Known, Candidate> all_settled(std::vector<Candidate> candidates, const SearchedOf& searched_of,
                                       unsigned threads, const Watch& watch) {
  std::vector<Searched> searched;
  searched.reserve(candidates.size());
  for (const Candidate& candidate : candidates) searched.push_back(searched_of(candidate));
  std::vector<char> settled(candidates.size(), 0);
  std::atomic<std::size_t> next = 0;
  const auto work = [&](bool tells) {
    for (std::size_t i = next++; i < candidates.size() && !stops(watch); i = next++) {
      if (tells)
        tell(watch, confirming, static_cast<std::int64_t>(i), static_cast<std::int64_t>(candidates.size()));
      candidates[i] = settled_in(searched[i], candidates[i]);
      settled[i] = 1;
    }
  };
  std::vector<std::future<void>> others;
  try {
    for (unsigned i = 1; i < threads && i < candidates.size(); ++i)
      others.push_back(std::async(std::launch::async, work, false));
  } catch (const std::system_error&) {
    // The machine has no more threads. Those that started do all the work.
  }
  work(true);
  for (std::future<void>& other : others) other.get();
  std::map<Known, Candidate> result;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (settled[i] != 0) result.emplace(known(candidates[i]), std::move(candidates[i]));
  }
  return result;
}

// Returns the count as a difference of iterators.
std::ptrdiff_t shown_count(std::size_t count) {
  return static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, 1'000'000));
}

// Returns the replacement of a candidate that does not fit once settled: the fastest of its division that
// needs enough less memory for PyTorch to have room, or else the best verdict of those tried.
Candidate in_place_of(const Candidate& settled, const Request& base, const Space& space, unsigned threads) {
  const Space division = part_of(space, division_of(settled.strategy));
  Request tight = base;
  Candidate last = settled;
  Candidate best = settled;
  for (int i = 0; i < most_settling_tries; ++i) {
    // What fits there takes at most `margin` less of what there is.
    const Bytes most = std::min(last.peak, (1 - base.margin) * tight.system.memory) - excess(base, last);
    if (most <= Bytes(0)) break;
    tight.system.memory = (1 / (1 - base.margin)) * most;
    const SearchResult result = search(tight, division, {.threads = threads, .described = &space});
    if (result.plans.empty() || result.plans.front().verdict != Verdict::fits) break;
    last = refined(tight, space, result.plans.front());
    last.variant = settled.variant;
    last.place = settled.place;  // among the plans it stands for
    last = settled_in({.base = base, .space = space}, last);
    if (last.verdict == Verdict::fits) return last;
    if (last.verdict < best.verdict) best = last;
  }
  return best;
}

}  // namespace

void confirm(SearchResult& result, const Shown& asked, const SearchedOf& searched_of,
             const BetterPlan& better, unsigned threads, const Watch& watch) {
  tell(watch, confirming);
  leave_undecided(result, watch);
  constexpr std::size_t most_undecided = 3;  // for an answer at once
  const Shown shown =
      result.undecided ? Shown{.plans = std::min(asked.plans, most_undecided), .pareto = 0} : asked;
  std::vector<Candidate> first(
      result.plans.begin(),
      result.plans.begin() + std::min(std::ssize(result.plans), shown_count(shown.plans)));
  first.insert(first.end(), result.pareto.begin(),
               result.pareto.begin() + std::min(std::ssize(result.pareto), shown_count(shown.pareto)));
  const std::map<Known, Candidate> settled = all_settled(std::move(first), searched_of, threads, watch);
  const auto settle = [&](const Candidate& candidate) {
    const auto at = settled.find(known(candidate));
    return at != settled.end() ? at->second : settled_in(searched_of(candidate), candidate);
  };
  std::set<Known> done;
  std::vector<Candidate> dropped;
  const auto confirm_plans = [&] {
    for (std::size_t i = 0; i < std::min(shown.plans, result.plans.size());) {
      if (done.size() > dropped.size() && stops(watch)) break;  // one plan is enough
      if (done.contains(known(result.plans[i]))) {
        ++i;
        continue;
      }
      const Searched of = searched_of(result.plans[i]);
      Candidate candidate = settle(result.plans[i]);
      if (candidate.verdict > result.plans[i].verdict)  // from fits to marginal to does_not_fit
        candidate = in_place_of(candidate, of.base, of.space, threads);
      done.insert(known(candidate));
      // Changes may have led to the division of another plan, of which one is kept.
      const auto at = result.plans.begin() + static_cast<std::ptrdiff_t>(i);
      const auto twin = std::find_if(result.plans.begin(), result.plans.end(), [&](const Candidate& other) {
        return &other != &*at && other.variant == candidate.variant &&
               division_of(other.strategy) == division_of(candidate.strategy);
      });
      const bool has_better = twin != result.plans.end() && !better(candidate, *twin);
      if (candidate.verdict == Verdict::does_not_fit || has_better) {
        dropped.push_back(std::move(candidate));
        result.plans.erase(at);
        continue;
      }
      *at = std::move(candidate);
      if (twin != result.plans.end()) result.plans.erase(twin);
      std::stable_sort(result.plans.begin(), result.plans.end(), better);
      i = 0;  // another one may have come before it
    }
  };
  confirm_plans();
  // A plan that PyTorch leaves marginal gives way to a faster one of its division that PyTorch holds no more for: the
  // search preferred it for the margin of its tensors.
  for (std::size_t i = 0; i < std::min(shown.plans, result.plans.size()) && !stops(watch); ++i) {
    Candidate& plan = result.plans[i];
    if (plan.verdict != Verdict::marginal || !plan.held) continue;
    const Searched of = searched_of(plan);
    const Bytes most = *plan.held;
    const Bytes most_grown = std::max(grown(of.base, plan), of.base.system.memory);
    for (const Candidate& candidate : result.pareto) {
      if (candidate.iteration >= plan.iteration || candidate.variant != plan.variant ||
          division_of(candidate.strategy) != division_of(plan.strategy))
        continue;
      Candidate other = settle(candidate);
      const bool fits = other.verdict != Verdict::does_not_fit && other.held && *other.held <= most;
      if (!fits || grown(of.base, other) > most_grown) continue;
      plan = std::move(other);
      done.insert(known(plan));
    }
  }
  std::stable_sort(result.plans.begin(), result.plans.end(), better);
  leave_undecided(result, watch);
  if (result.undecided) {
    std::erase_if(result.plans, [&](const Candidate& it) { return !done.contains(known(it)); });
    result.pareto.assign(result.plans.begin(), result.plans.begin() + (result.plans.empty() ? 0 : 1));
  }
  if (!result.plans.empty() && shown.plans > 0 && !result.undecided) {
    const Searched of = searched_of(result.plans.front());
    Candidate& best = result.plans.front();
    best = refined_and_settled(of.base, of.space, std::move(best));
    done.insert(known(best));
    // A change may have led to the division of a slower plan.
    const auto replaced = [&best](const Candidate& other) {
      return other.variant == best.variant && division_of(other.strategy) == division_of(best.strategy);
    };
    result.plans.erase(std::remove_if(result.plans.begin() + 1, result.plans.end(), replaced),
                       result.plans.end());
    confirm_plans();  // in the places of those
  }
  // As many of the front as are shown, in the places of those that do not fit too.
  std::vector<Candidate> front;
  for (const Candidate& candidate : result.pareto) {
    front.push_back(front.size() < shown.pareto && !stops(watch) ? settle(candidate) : candidate);
    if (front.back().verdict == Verdict::does_not_fit) front.pop_back();
  }
  const bool one_variant = std::all_of(result.plans.begin(), result.plans.end(),
                                       [&](const Candidate& it) { return it.variant == 0; });
  if (one_variant) {  // what took the place of another plan may belong to the front
    BestFound found;
    for (const Candidate& candidate : front) found.add(candidate);
    for (const Candidate& candidate : result.plans) found.add(candidate);
    SearchResult again;
    found.fill(again);
    front = std::move(again.pareto);
  }
  result.pareto = std::move(front);
  if (result.plans.empty() && !dropped.empty()) {  // every plan exceeds the memory that PyTorch would reserve
    result.rejected["device_memory"] += result.feasible;
    result.feasible = 0;
  }
  std::erase_if(dropped,
                [&](const Candidate& it) { return contains(searched_of(it).space.ran_out, it.strategy); });
  if (result.plans.empty() && !dropped.empty() && !result.nearest) result.nearest = dropped.front();
}

void confirm(SearchResult& result, const Shown& shown, const Request& base, const Space& space,
             unsigned threads, const Watch& watch) {
  const auto searched_of = [&](const Candidate&) { return Searched{.base = base, .space = space}; };
  confirm(
      result, shown, searched_of, [](const Candidate& x, const Candidate& y) { return x < y; }, threads,
      watch);
}

}  // namespace headroom

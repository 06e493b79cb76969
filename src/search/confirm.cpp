#include "headroom/search/confirm.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "headroom/plan/allocator_use.hpp"
#include "headroom/search/feasibility.hpp"
#include "search/best_found.hpp"

namespace headroom {
namespace {

// Each leaves at least this part of the device free beside what the last one took.
constexpr double least_step = 0.01;
constexpr int most_tries = 8;

Candidate settled_candidate(const Request& base, Candidate candidate) {
  Request request = base;
  request.strategy = candidate.strategy;
  Evaluation evaluation = evaluate(request);
  const Plan& plan = account(evaluation);
  candidate.peak = peak(plan);
  candidate.peak_rank = plan.peak_rank;
  const Bytes other = plan.ranks[plan.peak_rank].reserved;
  const std::optional<Bytes> reserved = reserved_bytes(plan, static_cast<std::int64_t>(plan.peak_rank));
  if (reserved) candidate.held = *reserved + other;
  if (candidate.held > base.system.memory) evaluation = settled(std::move(evaluation));
  candidate.verdict = account(evaluation).verdict;
  return candidate;
}

using Known = std::pair<std::size_t, std::int64_t>;
Known known(const Candidate& candidate) { return {candidate.variant, candidate.place}; }

// The candidates as they settle, each on one of some threads.
std::map<Known, Candidate> all_settled(std::vector<Candidate> candidates, const SearchedOf& searched_of,
                                       unsigned threads) {
  std::vector<Request> bases;
  bases.reserve(candidates.size());
  for (const Candidate& candidate : candidates) bases.push_back(searched_of(candidate).base);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < candidates.size(); i = next++)
      candidates[i] = settled_candidate(bases[i], candidates[i]);
  };
  std::vector<std::future<void>> others;
  try {
    for (unsigned i = 1; i < threads && i < candidates.size(); ++i)
      others.push_back(std::async(std::launch::async, work));
  } catch (const std::system_error&) {
    // The machine has no more threads to give. Those that started do all the work.
  }
  work();
  for (std::future<void>& other : others) other.get();
  std::map<Known, Candidate> result;
  for (Candidate& candidate : candidates) result.emplace(known(candidate), std::move(candidate));
  return result;
}

// How much less tensors may take at once for what holds them to stay within the device.
Bytes excess(const Request& base, const Candidate& candidate) {
  const Bytes over = candidate.held ? *candidate.held - base.system.memory : Bytes(0);
  return std::max(over, least_step * base.system.memory);
}

// Of a list; counts are unsigned where they are asked for.
std::ptrdiff_t shown_count(std::size_t count) {
  return static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, 1'000'000));
}

Space division_of(const Space& space, const Strategy& strategy) {
  Space division = space;
  division.tensor_parallel = {.only = {strategy.tensor_parallel}};
  division.context_parallel = {.only = {strategy.context_parallel}};
  division.pipeline_parallel = {.only = {strategy.pipeline_parallel}};
  division.data_parallel = {.only = {strategy.data_parallel}};
  return division;
}

// What takes the place of a candidate that settled so: itself, or the fastest of its division that PyTorch has room for.
Candidate in_place_of(const Candidate& settled, const Request& base, const Space& space, unsigned threads) {
  const Space division = division_of(space, settled.strategy);
  Request tight = base;
  Candidate last = settled;
  for (int i = 0; i < most_tries; ++i) {
    // What fits there takes at most `margin` less of what there is.
    const Bytes most = std::min(last.peak, (1 - base.margin) * tight.system.memory) - excess(base, last);
    if (most <= Bytes(0)) break;
    tight.system.memory = (1 / (1 - base.margin)) * most;
    const SearchResult result = search(tight, division, {.threads = threads});
    if (result.plans.empty() || result.plans.front().verdict != Verdict::fits) break;
    last = result.plans.front();
    last.variant = settled.variant;
    last = settled_candidate(base, last);
    if (last.verdict == Verdict::fits) return last;
  }
  return settled;
}

// What is asked about a value of the thing that is looked for.
Searched at_value(const Request& base, const Space& space, Extreme extreme, std::int64_t value) {
  Searched at{.base = base, .space = space};
  put(extreme, value, at.base, at.space);
  return at;
}

// Whether some strategy fits by what PyTorch holds. Tries ever leaner ones.
bool fits_held(const Searched& at) {
  Request tight = at.base;
  for (int i = 0; i < most_tries; ++i) {
    const std::optional<Strategy> fitting = Feasibility(tight).fitting_strategy(at.space);
    if (!fitting) return false;
    const Candidate candidate = settled_candidate(at.base, {.strategy = *fitting});
    if (candidate.verdict == Verdict::fits) return true;
    const Bytes most = candidate.peak - excess(at.base, candidate) / 2;
    if (most <= Bytes(0)) return false;
    tight.system.memory = (1 / (1 - at.base.margin)) * most;
  }
  return false;
}

// The largest value in [held, too_much) for which some strategy fits by what PyTorch holds; `held` is one. Halves the range
// a few times, since each value takes a replay or more.
std::int64_t furthest_held(const Request& base, const Space& space, const Question& question,
                           std::int64_t held, std::int64_t too_much) {
  constexpr int most_halvings = 6;
  for (int i = 0; i < most_halvings; ++i) {
    const std::int64_t middle = held + (too_much - held) / 2 / question.step * question.step;
    if (middle <= held) break;
    (fits_held(at_value(base, space, question.extreme, middle)) ? held : too_much) = middle;
  }
  return held;
}

}  // namespace

void confirm(SearchResult& result, const Shown& shown, const SearchedOf& searched_of,
             const BetterPlan& better, unsigned threads) {
  std::vector<Candidate> first(
      result.plans.begin(),
      result.plans.begin() + std::min(std::ssize(result.plans), shown_count(shown.plans)));
  first.insert(first.end(), result.pareto.begin(),
               result.pareto.begin() + std::min(std::ssize(result.pareto), shown_count(shown.pareto)));
  const std::map<Known, Candidate> settled = all_settled(std::move(first), searched_of, threads);
  const auto settle = [&](const Candidate& candidate) {
    const auto at = settled.find(known(candidate));
    return at != settled.end() ? at->second : settled_candidate(searched_of(candidate).base, candidate);
  };
  std::set<Known> done;
  std::vector<Candidate> dropped;
  for (std::size_t i = 0; i < std::min(shown.plans, result.plans.size());) {
    if (done.contains(known(result.plans[i]))) {
      ++i;
      continue;
    }
    const Searched of = searched_of(result.plans[i]);
    Candidate candidate = settle(result.plans[i]);
    if (result.plans[i].verdict == Verdict::fits && candidate.verdict != Verdict::fits)
      candidate = in_place_of(candidate, of.base, of.space, threads);
    done.insert(known(candidate));
    if (candidate.verdict == Verdict::does_not_fit) {
      dropped.push_back(std::move(candidate));
      result.plans.erase(result.plans.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    result.plans[i] = std::move(candidate);
    std::stable_sort(result.plans.begin(), result.plans.end(), better);
    i = 0;  // another one may have come before it
  }
  std::vector<Candidate> front = result.pareto;
  for (std::size_t i = 0; i < std::min(shown.pareto, front.size()); ++i) front[i] = settle(front[i]);
  std::erase_if(front, [](const Candidate& it) { return it.verdict == Verdict::does_not_fit; });
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
  if (result.plans.empty() && !dropped.empty() && !result.nearest) result.nearest = dropped.front();
}

Found find_held(const Request& base, const Space& space, const Question& question) {
  return find_held(base, space, question, std::array{base.workload.global_batch});
}

Found find_held(const Request& base, const Space& space, const Question& question,
                std::span<const std::int64_t> global_batches) {
  Request tight = base;
  std::optional<std::int64_t> too_much;
  for (int i = 0;; ++i) {
    Found found = find(tight, space, question, global_batches);
    // A microbatch or a time is looked for in other ways than the leanest.
    if (!found.value || question.within || question.run || i == most_tries) return found;
    const Searched at = at_value(base, space, question.extreme, *found.value);
    Request leaner = at.base;
    leaner.system.memory = tight.system.memory;
    const std::optional<Strategy> fitting = Feasibility(leaner).fitting_strategy(at.space);
    if (!fitting) return found;
    const Candidate candidate = settled_candidate(at.base, {.strategy = *fitting});
    if (candidate.verdict == Verdict::fits) {
      if (too_much) found.value = furthest_held(base, space, question, *found.value, *too_much);
      return found;
    }
    if (question.extreme != Extreme::min_devices) too_much = found.value;
    const Bytes most = tight.system.memory - excess(base, candidate);
    if (most <= Bytes(0)) return found;
    tight.system.memory = most;
  }
}

}  // namespace headroom

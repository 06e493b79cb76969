// A search by evaluating every strategy of a space in full.
#pragma once

#include <algorithm>
#include <tuple>

#include <doctest/doctest.h>

#include "headroom/plan/composer.hpp"
#include "headroom/search/search.hpp"
#include "search/requests.hpp"

namespace headroom {

struct BruteForce {
  std::vector<Candidate> feasible;  // in order
  std::optional<Candidate> nearest;
  std::int64_t evaluated = 0;
};

inline BruteForce brute_force(const Request& request, const Space& space) {
  BruteForce result;
  for (const PlacedStrategy& it : placed_strategies(request, space)) {
    ++result.evaluated;
    Request asked = request;
    asked.strategy = it.strategy;
    const Evaluation evaluation = evaluate(asked);
    const Plan& plan = account(evaluation);
    Candidate candidate{.strategy = it.strategy,
                        .verdict = plan.verdict,
                        .peak = peak(plan),
                        .peak_rank = plan.peak_rank,
                        .place = it.place};
    if (std::holds_alternative<Infeasible>(evaluation)) {
      if (!result.nearest || candidate.peak < result.nearest->peak) result.nearest = candidate;
      continue;
    }
    candidate.iteration = plan.timing->iteration.total;
    candidate.mfu = plan.timing->throughput.mfu;
    result.feasible.push_back(candidate);
  }
  std::sort(result.feasible.begin(), result.feasible.end());
  return result;
}

inline std::vector<Candidate> pareto_of(const std::vector<Candidate>& sorted) {
  std::vector<Candidate> by_time = sorted;
  std::stable_sort(by_time.begin(), by_time.end(), [](const Candidate& x, const Candidate& y) {
    return std::tie(x.iteration, x.peak, x.place) < std::tie(y.iteration, y.peak, y.place);
  });
  std::vector<Candidate> front;
  for (const Candidate& candidate : by_time) {
    if (front.empty() || candidate.peak < front.back().peak) front.push_back(candidate);
  }
  return front;
}

inline std::vector<Candidate> best_by_division(const std::vector<Candidate>& sorted) {
  std::vector<Candidate> best;
  for (const Candidate& candidate : sorted) {
    const bool seen = std::any_of(best.begin(), best.end(), [&](const Candidate& other) {
      return other.strategy.tensor_parallel == candidate.strategy.tensor_parallel &&
             other.strategy.pipeline_parallel == candidate.strategy.pipeline_parallel &&
             other.strategy.context_parallel == candidate.strategy.context_parallel;
    });
    if (!seen) best.push_back(candidate);
  }
  return best;
}

inline void check_against_brute_force(const Request& request, const Space& space) {
  const BruteForce all = brute_force(request, space);
  const SearchResult found = search(request, space);
  CHECK(found.evaluated == all.evaluated);
  CHECK(found.feasible == std::ssize(all.feasible));
  CHECK(found.plans == best_by_division(all.feasible));
  CHECK(found.pareto == pareto_of(all.feasible));
  CHECK(found.nearest == (all.feasible.empty() ? all.nearest : std::nullopt));
}

}  // namespace headroom

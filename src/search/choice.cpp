#include "headroom/search/choice.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "headroom/core/expects.hpp"
#include "headroom/search/drawbacks.hpp"
#include "search/neighbourhood.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

// Returns seconds with the price of the candidate's drawbacks.
double priced(const Request& base, const Candidate& candidate, Seconds time) {
  return (1 + price_of(drawbacks_of(base, candidate))) * time.count();
}

double priced(const Request& base, const Candidate& candidate) {
  return priced(base, candidate, candidate.iteration);
}

// Returns the neighbours of `now` that are equal to `from` within noise and cost less, the least first.
std::vector<Candidate> simpler(Neighbourhood& neighbourhood, const Request& base, const Candidate& from,
                               const Candidate& now, const SharedErrors& errors) {
  constexpr double worth_a_change_of_price = 0.999;
  const double most = worth_a_change_of_price * priced(base, now);
  std::vector<std::pair<double, Candidate>> found;
  const auto consider = [&](const Strategy& strategy) {
    if (!neighbourhood.reaches(now, strategy)) return;
    std::optional<Candidate> one = neighbourhood.evaluated(
        now, strategy, from.verdict, [&](const Candidate& it) { return priced(base, it) < most; });
    if (one && equal_within_noise(*one, from, errors))
      found.emplace_back(priced(base, *one), std::move(*one));
  };
  const auto consider_even_too = [&](Strategy strategy) {
    consider(strategy);
    if (strategy.stage_layers.empty()) return;
    strategy.stage_layers.clear();  // those of another number of stages do not fit
    consider(strategy);
  };
  consider_even_too(now.strategy);
  neighbourhood.visit_changes(now, consider_even_too);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<Candidate> sorted;
  sorted.reserve(found.size());
  for (auto& [price, candidate] : found) sorted.push_back(std::move(candidate));
  return sorted;
}

}  // namespace

Ranking ranked(const Request& base, std::span<const Candidate> candidates, const TimeBelief& belief,
               RankedBy by) {
  EXPECTS(!candidates.empty() && belief.log_seconds.size() >= candidates.size());
  Ranking ranking;
  ranking.order.resize(candidates.size());
  std::iota(ranking.order.begin(), ranking.order.end(), std::size_t{0});
  for (const std::size_t i : ranking.order) {
    if (belief.log_seconds[i] < belief.log_seconds[ranking.fastest]) ranking.fastest = i;
  }
  std::vector<double> merit;  // less is better
  for (const std::size_t i : ranking.order) {
    const Seconds time = expected(belief, i);
    const bool equal = equal_within_noise(belief, i, ranking.fastest);
    ranking.equal.push_back(equal);
    merit.push_back(equal && by == RankedBy::preference ? priced(base, candidates[i], time) : time.count());
  }
  std::stable_sort(ranking.order.begin(), ranking.order.end(), [&](std::size_t x, std::size_t y) {
    const bool x_is_equal = ranking.equal[x];
    if (by == RankedBy::preference && x_is_equal != ranking.equal[y]) return x_is_equal;
    return merit[x] < merit[y];
  });
  return ranking;
}

bool equal_within_noise(const Candidate& x, const Candidate& y, const SharedErrors& errors) {
  return within_noise(std::log(x.iteration / y.iteration), deviation_between(x.strategy, y.strategy, errors));
}

Candidate simplified(const Request& base, const Space& space, const Candidate& candidate,
                     const SharedErrors& errors) {
  if (space.breadth == Breadth::usual) return candidate;
  Neighbourhood neighbourhood(base, space);
  constexpr std::size_t most_settled = 4;
  constexpr int most_steps = 16;
  Candidate now = candidate;
  for (int i = 0; i < most_steps; ++i) {
    std::optional<Candidate> next = first_settled(base, simpler(neighbourhood, base, candidate, now, errors),
                                                  most_settled, candidate.verdict);
    if (!next) break;
    now = std::move(*next);
  }
  return now;
}

}  // namespace headroom

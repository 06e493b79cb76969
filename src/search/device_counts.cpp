#include "headroom/search/device_counts.hpp"

#include <algorithm>
#include <tuple>

namespace headroom {

bool dominates(const Candidate& x, const Candidate& y) {
  return x.iteration <= y.iteration && x.peak <= y.peak && devices(x.strategy) <= devices(y.strategy);
}

SearchResult search_device_counts(const Request& base, const Space& space,
                                  std::span<const std::int64_t> counts, const SearchOptions& options) {
  SearchResult all;
  std::vector<Candidate> fronts;
  for (const std::int64_t count : counts) {
    Space part = space;
    part.devices = count;
    SearchResult result = search(base, part, options);
    all.evaluated += result.evaluated;
    all.feasible += result.feasible;
    for (const auto& [reason, rejected] : result.rejected) all.rejected[reason] += rejected;
    if (!result.plans.empty()) all.plans.push_back(std::move(result.plans.front()));
    // What is beaten on its own number of devices is beaten.
    fronts.insert(fronts.end(), result.pareto.begin(), result.pareto.end());
    if (result.nearest && (!all.nearest || result.nearest->peak < all.nearest->peak)) {
      all.nearest = std::move(result.nearest);
    }
  }
  if (all.feasible > 0) all.nearest.reset();
  const auto order = [](const Candidate& x) { return std::tuple(x.iteration, x.peak, devices(x.strategy)); };
  const auto earlier = [&](const Candidate& x, const Candidate& y) { return order(x) < order(y); };
  std::sort(all.plans.begin(), all.plans.end(), [&](const Candidate& x, const Candidate& y) {
    return x.verdict != y.verdict ? x.verdict < y.verdict : earlier(x, y);
  });
  std::sort(fronts.begin(), fronts.end(), earlier);
  // Whatever beats one is at least as fast, and so comes before it.
  for (Candidate& candidate : fronts) {
    const bool beaten = std::any_of(all.pareto.begin(), all.pareto.end(),
                                    [&](const Candidate& member) { return dominates(member, candidate); });
    if (!beaten) all.pareto.push_back(std::move(candidate));
  }
  return all;
}

}  // namespace headroom

#include "headroom/search/device_counts.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/plan/composer.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

// Every strategy that fits, priced one by one.
std::vector<Candidate> all_that_fit(const Request& request, const Space& space) {
  std::vector<Candidate> candidates;
  Composer composer(request);
  for (const Strategy& strategy : strategies(request, space)) {
    composer.set_layout(strategy);
    const RankPeak peak = composer.peak(strategy);
    if (peak.bytes > request.system.memory) continue;
    candidates.push_back({.strategy = strategy,
                          .verdict = composer.verdict(peak.bytes),
                          .peak = peak.bytes,
                          .iteration = composer.iteration(strategy)});
  }
  return candidates;
}

using Point = std::tuple<Seconds, Bytes, std::int64_t>;
Point point_of(const Candidate& candidate) {
  return {candidate.iteration, candidate.peak, devices(candidate.strategy)};
}

TEST_CASE("device counts: the front is that of trying everything, and the plans are the best of each count") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    const std::vector<std::int64_t> counts{2, 4, 8, 12};
    const SearchResult found = search_device_counts(request, space, counts);
    std::vector<Candidate> all;
    using Merit = std::pair<Verdict, Point>;
    const auto merit_of = [](const Candidate& candidate) {
      return Merit{candidate.verdict, point_of(candidate)};
    };
    std::vector<Merit> best;
    for (const std::int64_t count : counts) {
      Space part = space;
      part.devices = count;
      const std::vector<Candidate> those = all_that_fit(request, part);
      all.insert(all.end(), those.begin(), those.end());
      if (those.empty()) continue;
      std::vector<Merit> merits;
      for (const Candidate& candidate : those) merits.push_back(merit_of(candidate));
      best.push_back(*std::min_element(merits.begin(), merits.end()));
    }
    RC_ASSERT(found.feasible == std::ssize(all));
    std::sort(best.begin(), best.end());
    RC_ASSERT(found.plans.size() == best.size());
    for (std::size_t i = 0; i < best.size(); ++i) RC_ASSERT(merit_of(found.plans[i]) == best[i]);

    std::vector<Point> front;
    for (const Candidate& candidate : all) {
      const bool beaten = std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
        return dominates(other, candidate) && point_of(other) != point_of(candidate);
      });
      if (!beaten) front.push_back(point_of(candidate));
    }
    std::sort(front.begin(), front.end());
    front.erase(std::unique(front.begin(), front.end()), front.end());
    RC_ASSERT(found.pareto.size() == front.size());
    for (std::size_t i = 0; i < front.size(); ++i) RC_ASSERT(point_of(found.pareto[i]) == front[i]);
  }));
}

TEST_CASE("device counts: one count is searched as such") {
  Request request{.model = read_model("gpt2-xl"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = 16, .sequence = 1024};
  const SearchResult found = search_device_counts(request, {}, std::vector<std::int64_t>{8});
  const SearchResult alone = search(request, {.devices = 8});
  CHECK(found.plans.front() == alone.plans.front());
  CHECK(found.pareto == alone.pareto);
  CHECK(found.evaluated == alone.evaluated);
}

}  // namespace
}  // namespace headroom

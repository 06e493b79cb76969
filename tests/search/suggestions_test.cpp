// What is suggested about a strategy against what the search finds on the same devices.
#include <doctest/doctest.h>

#include "headroom/plan/remedies.hpp"
#include "headroom/search/search.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

// The fastest of the search that is as good a verdict, if any.
std::optional<Seconds> fastest(const SearchResult& result, Verdict verdict) {
  if (result.plans.empty()) return std::nullopt;
  if (verdict == Verdict::fits) {
    if (result.plans.front().verdict != Verdict::fits) return std::nullopt;
    return result.plans.front().iteration;
  }
  return result.pareto.front().iteration;
}

}  // namespace

TEST_CASE("suggestions: none for a strategy of the space beats the best plan of the same devices") {
  CHECK(rc::check([] {
    Request request = small_request();
    request.software.uneven_stages = *rc::gen::arbitrary<bool>();
    request.software.microbatch_groups = *rc::gen::arbitrary<bool>();
    Space space{.devices = *rc::gen::element<std::int64_t>(2, 4, 8, 16)};
    space.layouts = layouts_of(request.software);
    const std::vector<Strategy> all = strategies(request, space);
    if (all.empty()) return;
    request.strategy = *rc::gen::elementOf(all);
    const Evaluation evaluation = evaluate(request);
    const auto* plan = std::get_if<Plan>(&evaluation);
    const std::vector<Alternative> found = plan != nullptr ? improvements(*plan, 5) : remedies(request, 5);
    RC_CLASSIFY(!found.empty(), "something is suggested");
    const SearchResult searched = search(request, space);
    for (const Alternative& alternative : found) {
      const Strategy& suggested = alternative.plan.request.strategy;
      RC_ASSERT(runs_groups(request.software, space) || suggested.microbatch_group_size == 0);
      RC_CLASSIFY(suggested.microbatch_group_size > suggested.pipeline_parallel, "in larger groups");
      RC_ASSERT(devices(alternative.plan.request.strategy) == space.devices);
      const std::optional<Seconds> best = fastest(searched, alternative.plan.verdict);
      RC_ASSERT(best.has_value());
      RC_ASSERT(*best <= alternative.plan.timing->iteration.total);
    }
  }));
}

}  // namespace headroom

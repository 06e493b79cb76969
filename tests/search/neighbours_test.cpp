#include "headroom/search/neighbours.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "search/requests.hpp"

namespace headroom {
namespace {

TEST_CASE("neighbours: doublings of sizes and other choices are counted") {
  const Strategy strategy{.tensor_parallel = 4, .pipeline_parallel = 2};
  CHECK(distance(strategy, strategy) == 0);
  Strategy other = strategy;
  other.tensor_parallel = 8;
  other.micro_batch = 4;
  CHECK(distance(strategy, other) == doctest::Approx(3));
  other = strategy;
  other.data_parallel = 100;
  CHECK(distance(strategy, other) == 0);
  other.sequence_parallel = true;
  other.recompute.policy = RecomputePolicy::full;
  CHECK(distance(strategy, other) == doctest::Approx(3));
}

TEST_CASE("neighbours: fit, and nothing nearer does") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    const Strategy asked{.tensor_parallel = *rc::gen::inRange<std::int64_t>(1, 9),
                         .pipeline_parallel = *rc::gen::inRange<std::int64_t>(1, 9),
                         .micro_batch = *rc::gen::inRange<std::int64_t>(1, 9),
                         .sequence_parallel = *rc::gen::arbitrary<bool>()};
    std::vector<double> distances;
    for (const Strategy& strategy : strategies(request, space)) {
      Request other = request;
      other.strategy = strategy;
      if (std::holds_alternative<Plan>(evaluate(other))) distances.push_back(distance(asked, strategy));
    }
    const std::vector<Strategy> found = nearest_that_fit(request, space, asked, 3);
    RC_ASSERT(found.empty() == distances.empty());
    for (const Strategy& strategy : found) {
      Request other = request;
      other.strategy = strategy;
      RC_ASSERT(std::holds_alternative<Plan>(evaluate(other)));
    }
    if (!found.empty()) {
      RC_ASSERT(distance(asked, found.front()) == *std::min_element(distances.begin(), distances.end()));
    }
  }));
}

}  // namespace
}  // namespace headroom

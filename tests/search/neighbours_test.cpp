#include "headroom/search/neighbours.hpp"

#include <algorithm>
#include <utility>

#include <doctest/doctest.h>

#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/search/insisted.hpp"
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
    const Request small = small_request();
    const Space space = small_space();
    const Request request = with_insisted(small, space);
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

TEST_CASE("neighbours: of those equally near the nearest in a space differs in the fewest fields") {
  CHECK(rc::check([] {
    const Request small = small_request();
    const Space space = small_space();
    const Request request = with_insisted(small, space);
    const Strategy asked{
        .pipeline_parallel = *rc::gen::inRange<std::int64_t>(1, 5),
        .virtual_pipeline = *rc::gen::inRange<std::int64_t>(1, 3),
        .recompute = {.policy = RecomputePolicy::full, .layers = *rc::gen::inRange<std::int64_t>(0, 5)},
        .schedule = *rc::gen::element(ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved,
                                      ScheduleKind::gpipe),
        .precision = *rc::gen::element(Precision::bf16, Precision::fp8)};
    const auto far = [&](const Strategy& other) {
      const auto differ =
          std::count_if(strategy_fields.begin(), strategy_fields.end(), [&](const StrategyField& field) {
            return value_of(field, asked, request.workload) != value_of(field, other, request.workload);
          });
      return std::pair{distance(asked, other), differ};
    };
    const std::optional<Strategy> found = nearest_in(request, space, asked);
    const std::vector<Strategy> all = strategies(request, space);
    RC_ASSERT(found.has_value() == !all.empty());
    for (const Strategy& other : all) RC_ASSERT(far(*found) <= far(other));
  }));
}

}  // namespace
}  // namespace headroom

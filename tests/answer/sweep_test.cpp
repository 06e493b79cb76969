// The row of a point: of a strategy, of a search, and of what is neither.
#include "headroom/answer/sweep.hpp"

#include <doctest/doctest.h>

#include "headroom/io/software_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/plan/interval.hpp"
#include "plan/requests.hpp"

namespace headroom {

TEST_CASE("a row has the figures of the plan") {
  const Evaluation evaluation = evaluate(gpt3_timed());
  const Plan& plan = account(evaluation);
  const SweepRow row = row_of(evaluation);
  CHECK(row.verdict == plan.verdict);
  CHECK(fits(row) == std::holds_alternative<Plan>(evaluation));
  CHECK(row.figures.devices == 64);
  CHECK(row.figures.peak_bytes == peak(plan).count());
  CHECK(*row.figures.headroom_bytes + *row.figures.peak_bytes == (80_GiB).count());
  CHECK(row.figures.iteration_seconds == plan.timing->iteration.total.count());
  const IterationInterval interval = iteration_interval(
      plan.timing->iteration.total, iteration_spread(plan.request, embedded_spreads()).spread);
  CHECK(row.figures.low_iteration_seconds == interval.low.count());
  CHECK(row.figures.high_iteration_seconds == interval.high.count());
  CHECK(row.figures.tokens_per_second == plan.timing->throughput.tokens_per_second);
  CHECK(!row.figures.evaluated);
}

TEST_CASE("a search's row is its best plan") {
  const Request request = gpt3_timed();
  Space space{.devices = 64};
  space.tensor_parallel.only = {8};
  const SearchResult result = search(request, space);
  const SweepRow row = row_of(request, result);
  REQUIRE(!result.plans.empty());
  CHECK(row.figures.iteration_seconds == result.plans.front().iteration.count());
  CHECK(row.figures.peak_bytes == result.plans.front().peak.count());
  CHECK(row.figures.evaluated == static_cast<double>(result.evaluated));
  CHECK(row.strategy == edits_of(result.plans.front().strategy, request.software, request.model));
}

TEST_CASE("a search's row says nothing that its stack has by itself") {
  Request request = gpt3_timed();
  request.software = read_software("deepspeed-2025");
  request.strategy = with_stack_defaults(request.strategy, request.software, request.model);
  const SweepRow row = row_of(request, search(request, {.devices = 256}));
  REQUIRE(row.strategy);
  CHECK(std::none_of(row.strategy->begin(), row.strategy->end(),
                     [](const Edit& edit) { return edit.field == "gradient_dtype"; }));
}

TEST_CASE("a search without a legal layout is a row with a problem") {
  const SweepRow row = row_of(gpt3_timed(), SearchResult{});
  CHECK(!row.verdict);
  CHECK(!fits(row));
  CHECK(problem_text(row) == "no layout of the space is legal");
}

TEST_CASE("a point is an estimate or, with a space, a search") {
  const Request request = gpt3_timed();
  CHECK(answer(PointQuestion{.request = request, .space = {}}) == row_of(evaluate(request)));
  Space space{.devices = 64};
  space.tensor_parallel.only = {8};
  CHECK(answer(PointQuestion{.request = request, .space = space}) == row_of(request, search(request, space)));
  Request illegal = request;
  illegal.strategy.tensor_parallel = 7;
  CHECK_THROWS_AS(answer(PointQuestion{.request = illegal, .space = {}}), InputError);
}

}  // namespace headroom

// Searches that are stopped: what they hold is true, and what they leave open is bounded. Never stopped by time.
#include <atomic>

#include <doctest/doctest.h>

#include "headroom/answer/frontier.hpp"
#include "headroom/answer/plan.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/search/find_held.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

// Stops after it was asked so many times.
struct StopAfter {
  std::int64_t asked = 0;
  std::atomic<std::int64_t> count = 0;
  explicit StopAfter(std::int64_t times) : asked(times) {}
  Watch watch() {
    return {.stops = [this] { return ++count > asked; }, .tells = {}};
  }
};

Request stopped_request(const std::string& model, std::int64_t batch) {
  Request request{.model = read_model(model), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = batch, .sequence = request.model.sequence};
  return request;
}

std::vector<Seconds> times_of(const Request& request, const Space& space) {
  std::vector<Seconds> times;
  for (const PlacedStrategy& it : placed_strategies(request, space)) {
    Composer composer(request);
    const Layout layout = composer.layout(it.strategy);
    times.push_back(layout.iteration(it.strategy));
  }
  return times;
}

TEST_CASE("stopping: bounds first, on any number of threads, change nothing of a finished search") {
  rc::check([] {
    const Request request = small_request();
    Space space = small_space();
    space.recompute_window = *rc::gen::arbitrary<bool>();
    const SearchResult plain = search(request, space);
    for (const unsigned threads : {1U, 3U}) {
      double before = 0;
      const SearchResult bounded =
          search(request, space,
                 {.threads = threads,
                  .progress =
                      [&](const SearchProgress& progress) {
                        RC_ASSERT(progress.decided >= before && progress.decided <= 1);
                        before = progress.decided;
                      },
                  .bounds = true});
      RC_ASSERT(bounded == plain);
    }
  });
}

TEST_CASE("stopping: no strategy that is left is faster than the bound, and the best found is a strategy") {
  Request request = stopped_request("gpt2-xl", 16);
  request.model = with_layers(request.model, 12);
  request.system.memory = 12_GiB;  // so that layers are placed by memory, too
  const Space space{.devices = 8, .layouts = Layouts::any};
  const SearchResult whole = search(request, space);
  REQUIRE_FALSE(whole.plans.empty());
  StopAfter never(most_count);
  CHECK(search(request, space, {.watch = never.watch(), .bounds = true}) == whole);
  std::int64_t bounded = 0;
  double least = 0;
  for (std::int64_t times = 1; times < never.count; times += std::max<std::int64_t>(1, never.count / 97)) {
    CAPTURE(times);
    StopAfter stop(times);
    const SearchResult part = search(request, space, {.watch = stop.watch(), .bounds = true});
    REQUIRE(part.undecided);
    CHECK(part.undecided->decided <= 1);
    CHECK(part.evaluated <= whole.evaluated + 1);
    if (part.undecided->least) {
      ++bounded;
      // Rounds go on from the least bound, and the best of all is found or left.
      CHECK(part.undecided->least->count() >= least);
      least = part.undecided->least->count();
      const Seconds found = part.plans.empty() ? Seconds(std::numeric_limits<double>::infinity())
                                               : part.plans.front().iteration;
      CHECK(std::min(found, *part.undecided->least) <= whole.plans.front().iteration);
    }
    for (const Candidate& plan : part.plans) {
      Request asked = request;
      asked.strategy = plan.strategy;
      const Evaluation evaluation = evaluate(asked);
      CHECK(account(evaluation).timing->iteration.total == plan.iteration);
      CHECK(peak(account(evaluation)) == plan.peak);
    }
  }
  CHECK(bounded > 10);
}

TEST_CASE("stopping: a bound holds for every strategy of its layout") {
  rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    // The first is that of all layouts.
    std::optional<Seconds> least;
    search(request, space,
           {.progress =
                [&](const SearchProgress& it) {
                  if (!least) least = it.least;
                },
            .bounds = true});
    if (!least) return;
    for (const Seconds time : times_of(request, space)) RC_ASSERT(*least <= time);
  });
}

TEST_CASE("stopping: the plan of an answer that is stopped fits, and says nothing of a finished search") {
  PlanQuestion question{.base = stopped_request("gpt2-xl", 16),
                        .space = {.breadth = Breadth::wide, .devices = 8}};
  StopAfter never(most_count);
  const PlanReply whole = answer(question, {.watch = never.watch(), .bounds = true});
  CHECK_FALSE(whole.result.undecided);
  CHECK_FALSE(gap(whole));
  std::int64_t gaps = 0;
  for (std::int64_t times = 1; times < never.count; times += std::max<std::int64_t>(1, never.count / 41)) {
    CAPTURE(times);
    StopAfter stop(times);
    const PlanReply reply = answer(question, {.watch = stop.watch(), .bounds = true});
    REQUIRE(reply.result.undecided);
    CHECK_FALSE(reply.blocked);
    CHECK(reply.left_out.empty());
    if (gap(reply)) ++gaps;
    for (const Candidate& plan : reply.result.plans) {
      CHECK(plan.held.has_value());  // it was confirmed
      CHECK(plan.verdict == Verdict::fits);
    }
    if (reply.result.plans.empty()) continue;
    CHECK(std::holds_alternative<Plan>(reply.accounts.front().evaluation));
    CHECK(whole.result.plans.front().iteration <= reply.result.plans.front().iteration);
  }
  CHECK(gaps > 0);
}

TEST_CASE("stopping: an inverse question keeps the furthest value that fits so far") {
  PlanQuestion question{.base = stopped_request("gpt2-xl", 16), .space = {.devices = 8}};
  question.find = Question{.extreme = Extreme::max_sequence, .step = 128};
  const std::optional<std::int64_t> most = answer(question).found->value;
  REQUIRE(most);
  std::int64_t planned = 0;
  for (const std::int64_t times : {1, 5, 20, 50, 100}) {
    CAPTURE(times);
    StopAfter stop(times);
    const PlanReply reply = answer(question, {.watch = stop.watch()});
    CHECK(reply.found->stopped);
    CHECK(reply.result.undecided);
    if (reply.result.plans.empty()) continue;
    ++planned;
    REQUIRE(reply.found->value);
    CHECK(reply.base.workload.sequence == *reply.found->value);
    CHECK(*reply.found->value <= *most);
    CHECK(reply.result.plans.front().held.has_value());
  }
  CHECK(planned > 0);
}

TEST_CASE("stopping: variants that are not searched leave a comparison undecided") {
  PlanQuestion question{.base = stopped_request("gpt2-xl", 16), .space = {.devices = 8}};
  question.device_counts = {4, 8};
  StopAfter stop(200);
  const PlanReply reply = answer(question, {.watch = stop.watch()});
  REQUIRE(reply.result.undecided);
  CHECK(reply.result.undecided->decided < 1);
  CHECK_FALSE(gap(reply));
}

TEST_CASE("stopping: a frontier keeps the points of the sets that it came to") {
  Request request = stopped_request("gpt2-xl", 16);
  request.strategy.data_parallel = 8;
  const FrontierReply whole = answer(FrontierQuestion{.request = request});
  CHECK_FALSE(whole.stopped);
  StopAfter stop(5);
  const FrontierReply part = answer(FrontierQuestion{.request = request}, stop.watch());
  CHECK(part.stopped);
  CHECK_FALSE(part.points.empty());
  CHECK(part.points.size() < whole.points.size());
  CHECK(part.batches.empty());
}

}  // namespace
}  // namespace headroom

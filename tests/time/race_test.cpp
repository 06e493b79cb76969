#include "headroom/time/race.hpp"

#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/time/stage_time.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

struct RaceStep {
  Race race;
  bool waits = false;
};

// A kernel of an op, or a wait. Whole numbers, whose sums are exact.
std::vector<RaceStep> some_steps() {
  std::vector<RaceStep> steps(*rc::gen::inRange<std::size_t>(1, 12));
  for (RaceStep& step : steps) {
    const auto some = [] { return Seconds(*rc::gen::inRange(0, 10)); };
    step.waits = *rc::gen::inRange(0, 3) == 0;
    step.race = step.waits ? wait_for_device : race_of_op(some(), some(), 1);
  }
  return steps;
}

Race product(const std::vector<RaceStep>& steps) {
  Race all;
  for (const RaceStep& step : steps) all = all * step.race;
  return all;
}

// When the device is done, step by step.
Seconds followed(const std::vector<RaceStep>& steps) {
  Seconds host;
  Seconds device;
  for (const RaceStep& step : steps) {
    if (step.waits) host = std::max(host, device);
    host += step.race.host;
    device = std::max(device, step.waits ? device : host) + step.race.device;
  }
  return std::max(host, device);
}

}  // namespace

TEST_CASE("race: the product of parts is what following host and device step by step gives") {
  CHECK(rc::check([] {
    const std::vector<RaceStep> steps = some_steps();
    RC_ASSERT(product(steps).both == followed(steps));
  }));
}

TEST_CASE("race: parts may be multiplied in any grouping, and equal ones by doubling") {
  CHECK(rc::check([] {
    const Race x = product(some_steps());
    const Race y = product(some_steps());
    const Race z = product(some_steps());
    RC_ASSERT((x * y) * z == x * (y * z));
    const std::int64_t count = *rc::gen::inRange(0, 20);
    Race all;
    for (std::int64_t i = 0; i < count; ++i) all = all * x;
    RC_ASSERT(in_a_row(count, x) == all);
    // Two parts take no longer together than one after the other: bounds of a search rely on it.
    RC_ASSERT((x * y).both <= x.both + y.both);
    RC_ASSERT(x.both >= std::max(x.host, x.device));
  }));
}

TEST_CASE("race: a wait keeps what the host was ahead from the kernels that follow") {
  const Race slow_on_device = race_of_op(Seconds(1), Seconds(10), 1);
  const Race slow_on_host = race_of_op(Seconds(8), Seconds(1), 1);
  CHECK((slow_on_device * slow_on_host).both == Seconds(12));
  CHECK((slow_on_device * wait_for_device * slow_on_host).both == Seconds(20));
  CHECK(!waits(slow_on_device * slow_on_host));
  CHECK(waits(slow_on_device * wait_for_device));
}

TEST_CASE("race: kernels of an op run while the host launches the next") {
  CHECK(race_of_op(Seconds(8), Seconds(4), 1).both == Seconds(12));
  CHECK(race_of_op(Seconds(8), Seconds(4), 4).both == Seconds(9));
  CHECK(race_of_op(Seconds(4), Seconds(8), 4).both == Seconds(9));
}

TEST_CASE("race: experts whose numbers of tokens the host awaits take longer where launches are slow") {
  Request request = gpt3_timed();
  request.model = read_model("qwen3-30b-a3b");
  request.workload = {.global_batch = 8, .sequence = 4096};
  request.strategy = {.data_parallel = 8, .expert_parallel = 8};
  const auto forward = [](const Request& it) {
    return account(settled(evaluate(it))).timing->iteration.times.stages.front().forward;
  };
  const auto alone = [](const Request& it) {
    const IterationTime time = account(settled(evaluate(it))).timing->iteration;
    const StageCost stage = stage_costs(time.cost, it.model, it.strategy).front();
    CHECK(waits(stage.race));
    return pass_time(stage.forward, it.system.performance->rates.host, it.software);
  };
  HostRates& host = request.system.performance->rates.host;
  CHECK(forward(request) >= alone(request));
  host.operation.value = 4 * host.operation.value;
  host.launch.value = 4 * host.launch.value;
  CHECK(forward(request) > alone(request));
  request.software.cuda_graphs = CudaGraphs::full_iteration;
  CHECK(!waits(
      stage_costs(account(settled(evaluate(request))).timing->iteration.cost, request.model, request.strategy)
          .front()
          .race));
}

}  // namespace headroom

#include "headroom/time/stage_time.hpp"

#include <numeric>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/time/launches.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::megatron;
using tests::performance;

Seconds wall(Seconds device, std::int64_t operations, const Software& software = megatron()) {
  const HostRates& rates = performance().rates.host;
  const Seconds host = host_time(static_cast<double>(operations), 0, launch_times(rates, software));
  return pass_time({.memory_bound = device, .operations = operations, .host = host}, rates, software);
}

}  // namespace

TEST_CASE("pass time: the device's, where its work outweighs the host's") {
  CHECK(wall(Seconds(1), 10).count() == tests::about(1));
  CHECK(wall(Seconds(0), 0) == Seconds(0));
}

TEST_CASE("pass time: the host's, where kernels are short") {
  CHECK(wall(Seconds(1e-3), 1000).count() == tests::about(0.051));
}

TEST_CASE("pass time: where both take as long they delay each other") {
  CHECK(wall(Seconds(0.051), 1000).count() == tests::about(0.051 * std::pow(2.0, 0.25)));
}

TEST_CASE("pass time: blocking launches take turns") {
  CHECK(wall(Seconds(1), 1000, {.blocking_launches = true}).count() == tests::about(1 + 0.051 + 0.050));
}

TEST_CASE("pass time: never below device or host, never above their sum") {
  CHECK(rc::check([] {
    const Seconds device(static_cast<double>(*rc::gen::inRange(0, 1'000'000)) * 1e-6);
    const std::int64_t operations = *rc::gen::inRange(0, 10'000);
    const Seconds host = static_cast<double>(operations) * Seconds(51e-6);
    RC_ASSERT(wall(device, operations) >= 0.999999 * std::max(device, host));
    RC_ASSERT(wall(device, operations) <= 1.000001 * (device + host));
  }));
}

TEST_CASE("stage costs: layers, with the embedding on the first stage and the head on the last") {
  k22::Run run = k22::gpt3_175b();
  run.strategy.recompute.policy = RecomputePolicy::selective;
  const ModelCost cost = model_cost(run.model, run.strategy, tests::setting(run));
  const std::vector<StageCost> stages = stage_costs(cost, run.model, run.strategy);
  REQUIRE(stages.size() == 24);
  CHECK(stages[1].forward == 4 * cost.kinds[0].forward);
  CHECK(stages[1].recompute == 4 * cost.kinds[0].recompute);
  CHECK(stages[1].backward == 4 * backward(cost.kinds[0]));
  CHECK(stages[0].forward == 4 * cost.kinds[0].forward + cost.kinds[1].forward);
  CHECK(stages[23].backward == 4 * backward(cost.kinds[0]) + backward(cost.kinds[2]));
}

TEST_CASE("stage costs: the block method recomputes the first layers of a chunk only") {
  k22::Run run = k22::gpt3_175b();
  run.strategy.recompute = {.policy = RecomputePolicy::full, .layers = 3};
  const ModelCost cost = model_cost(run.model, run.strategy, tests::setting(run));
  CHECK(stage_costs(cost, run.model, run.strategy)[1].recompute == 3 * cost.kinds[0].forward);
  run.strategy.recompute.method = RecomputeMethod::uniform;
  CHECK(stage_costs(cost, run.model, run.strategy)[1].recompute == 4 * cost.kinds[0].forward);
}

}  // namespace headroom

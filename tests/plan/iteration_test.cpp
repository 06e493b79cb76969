#include "headroom/plan/iteration.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

Timing timing_of(const Request& request) { return *account(evaluate(request)).timing; }

Seconds sum(const Breakdown& breakdown) {
  Seconds total;
  for (const auto& [name, part] : breakdown_parts) total += breakdown.*part;
  return total;
}

}  // namespace

TEST_CASE("iteration: the parts add up to the whole, and none is negative") {
  for (const auto policy : {RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full}) {
    for (const std::int64_t replicas : {1, 4}) {
      Request request = gpt3_timed();
      request.strategy.recompute.policy = policy;
      request.strategy.data_parallel = replicas;
      const IterationTime iteration = timing_of(request).iteration;
      CHECK(sum(iteration.breakdown) / iteration.total == doctest::Approx(1).epsilon(1e-14));
      for (const auto& [name, part] : breakdown_parts) CHECK(iteration.breakdown.*part >= Seconds(0));
      CHECK((iteration.breakdown.recompute > Seconds(0)) == (policy != RecomputePolicy::none));
      CHECK((iteration.breakdown.data_communication > iteration.breakdown.optimizer) == (replicas > 1));
    }
  }
}

TEST_CASE("iteration: launch overhead that is next to nothing is not below zero for being rounded") {
  Request request = gpt3_timed();
  request.model = read_model("gpt-1t");
  request.strategy = {.tensor_parallel = 2, .micro_batch = 32};
  request.workload = {.global_batch = 3840, .sequence = 32768};
  CHECK(timing_of(request).iteration.breakdown.launch_overhead >= Seconds(0));
}

TEST_CASE(
    "iteration: over racks a job has parts of 64 devices, which sixteen ranks of tensor parallelism divide") {
  Request request = gpt3_timed();
  request.system = read_system("gb200-nvl72");
  request.strategy.tensor_parallel = 16;  // x PP 8
  const Seconds in_parts = timing_of(request).iteration.total;
  request.system.devices_per_node = 64;
  CHECK(timing_of(request).iteration.total == in_parts);
  request.system.devices_per_node = 72;
  request.system.devices_per_host.reset();  // whole racks, which they do not divide
  CHECK(timing_of(request).iteration.total > in_parts);
}

TEST_CASE("iteration: a window of microbatches recomputes less and takes more memory, within capacity") {
  Request request = with_both_techniques(gpt3_timed());
  request.strategy.recompute.policy = RecomputePolicy::full;
  const Plan all = account(evaluate(request));
  request.strategy.recompute.window = true;
  const Plan some = account(evaluate(request));
  CHECK(some.timing->iteration.total < all.timing->iteration.total);
  CHECK(some.timing->flops.hardware < all.timing->flops.hardware);
  CHECK(some.timing->flops.model == all.timing->flops.model);
  CHECK(peak(some) > peak(all));
  CHECK(some.verdict == Verdict::fits);
  // Late ranks have fewer microbatches in flight, and so recompute less.
  const auto& ranks = some.timing->iteration.schedule.ranks;
  CHECK(ranks.back().recompute < ranks.front().recompute);
}

TEST_CASE("iteration: passes for weights apart do the same work, in no less time") {
  const Request request = with_both_techniques(gpt3_timed());
  const HostRates& rates = request.system.performance->rates.host;
  for (const StageCost& stage :
       stage_costs(timing_of(request).iteration.cost, request.model, request.strategy)) {
    const PassCost both = stage.backward_data + stage.backward_weight;
    CHECK(device_time(both) / device_time(stage.backward) == doctest::Approx(1));
    CHECK(both.operations == stage.backward.operations);
    const PassTimes merged = pass_times(stage, {}, rates, request.software);
    const PassTimes apart =
        pass_times(stage, {.kind = ScheduleKind::zero_bubble_h1}, rates, request.software);
    CHECK(merged.backward_weight == Seconds(0));
    CHECK(apart.forward == merged.forward);
    CHECK(apart.backward_weight > Seconds(0));
    CHECK(apart.backward + apart.backward_weight >= merged.backward);
    CHECK(apart.backward < merged.backward);
  }
}

TEST_CASE(
    "iteration: a longer exchange between experts never shortens a pair of passes, nor hides more of it") {
  CHECK(rc::check([] {
    const HostRates rates = gpt3_timed().system.performance->rates.host;
    const auto some = [] { return Seconds(1e-4 * static_cast<double>(*rc::gen::inRange(0, 1000))); };
    const auto pass = [&](Seconds exchange) {
      return PassCost{.gemm = some(), .expert_communication = exchange, .host = some()};
    };
    StageCost stage{.forward = pass(some()),
                    .recompute = *rc::gen::arbitrary<bool>() ? pass(some()) : PassCost{},
                    .backward_data = pass(some()),
                    .backward_weight = pass(Seconds(0))};
    const auto exchanging = [&] {
      for (PassCost* const it : {&stage.forward, &stage.recompute, &stage.backward_data})
        it->communication = it->expert_communication;
      stage.backward = stage.backward_data + stage.backward_weight;
    };
    exchanging();
    const Software software{.delay_weight_gradients = *rc::gen::arbitrary<bool>()};
    const ScheduleKind kind =
        *rc::gen::element(ScheduleKind::one_forward_one_backward, ScheduleKind::dualpipe);
    const double loss = 0.01 * *rc::gen::inRange(0, 100);
    const auto pair = [&] {
      const PassTimes times = pass_times(stage, {.kind = kind}, rates, software);
      RC_ASSERT(times.forward_exchanges <= stage.forward.expert_communication + Seconds(1e-12));
      return total(times) - hidden_beside(times, times, loss);
    };
    const Seconds sooner = pair();
    PassCost* const longer = *rc::gen::element(&stage.forward, &stage.recompute, &stage.backward_data);
    longer->expert_communication += some();
    exchanging();
    RC_ASSERT(pair() >= sooner - Seconds(1e-12));
  }));
}

TEST_CASE("throughput: eq. 7 over time, devices and peak, with attention in full or halved by the mask") {
  const Request request = with_both_techniques(gpt3_timed());
  const Timing timing = timing_of(request);
  const double iteration = timing.iteration.total.count();
  const double h = 12288, s = 2048, v = 51200, L = 96, B = 64;
  const double model = 72 * B * L * s * h * h * (1 + s / (6 * h) + v / (12 * h * L));
  constexpr double rounding = 1e-14;  // beyond 2^53
  CHECK(timing.flops.model.count() == doctest::Approx(model).epsilon(rounding));
  const double masked = 72 * B * L * s * h * h * s / (12 * h);
  CHECK(timing.flops.model_causal.count() == doctest::Approx(model - masked).epsilon(rounding));
  CHECK(timing.throughput.mfu_full == doctest::Approx(model / iteration / 64 / 312e12));
  CHECK(timing.throughput.mfu == doctest::Approx((model - masked) / iteration / 64 / 312e12));
  CHECK(timing.throughput.hfu < timing.throughput.hfu_full);
  CHECK(timing.throughput.tokens_per_second == doctest::Approx(B * s / iteration));
  CHECK(timing.throughput.samples_per_second == doctest::Approx(B / iteration));
}

TEST_CASE("throughput: only layers that recompute count") {
  Request request = with_both_techniques(gpt3_timed());
  request.strategy.recompute = {.policy = RecomputePolicy::full, .layers = 1};  // of 4 in each virtual stage
  const IterationFlops flops = timing_of(request).flops;
  request.strategy.recompute.layers = 0;
  const IterationFlops all = timing_of(request).flops;
  CHECK((flops.hardware - flops.model) / (all.hardware - all.model) == doctest::Approx(0.25));
}

TEST_CASE("warnings: predictions beyond the fitted range are named") {
  Request request = with_both_techniques(gpt3_timed());
  request.model.architecture.kernels.attention = AttentionKernel::flash;
  std::vector<std::string> codes;
  const Plan plan = account(evaluate(request));
  for (const Warning& warning : plan.warnings) codes.push_back(warning.code);
  CHECK(std::find(codes.begin(), codes.end(), "flash_attention_assumed") != codes.end());
}

}  // namespace headroom

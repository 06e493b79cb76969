// A step partly on the host: what goes there and back, what its CPUs take, and what of it lies in its memory.
#include "headroom/time/offload.hpp"

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {
namespace {

constexpr double held_parameters = 1e9;

const Host some_host{.memory = Bytes(2e12),
                     .memory_bandwidth = BytesPerSecond(600e9),
                     .device_link = BytesPerSecond(60e9),
                     .source = "a sheet"};

Request offloading(double fraction, std::int64_t data_parallel = 8) {
  return {.model = read_model("llama-3-8b"),
          .system = read_system("dgx-h100-80g"),
          .software = read_software("megatron-core-2025"),
          .strategy = {.data_parallel = data_parallel,
                       .recompute = {.policy = RecomputePolicy::full},
                       .data_sharding = DataSharding::zero1,
                       .offload = {.optimizer = {fraction}}},
          .workload = {.global_batch = 64, .sequence = 8192}};
}

}  // namespace

TEST_CASE("offload: gradients go to the host, weights come back, and 30 bytes a parameter move there") {
  Strategy strategy{
      .data_parallel = 8, .data_sharding = DataSharding::zero1, .offload = {.optimizer = {0.5}}};
  CHECK(host_step_bytes(strategy.optimizer) == 30);
  const OffloadedStep step = offloaded_step(held_parameters, strategy, Workload{}, Seconds(1), Seconds(0.25),
                                            Software{}, some_host, 8);
  const double stepped = held_parameters / 8 / 2;
  CHECK(step == OffloadedStep{.device = Seconds(0.625),  // a quarter stays, and half of the rest
                              .gradients = Seconds(4 * stepped / 60e9),
                              .host = Seconds(8 * stepped * 30 / 600e9),
                              .weights = Seconds(2 * stepped / 60e9)});
  CHECK(total(step, strategy.offload) == step.device + step.gradients + step.host + step.weights);
  strategy.offload.overlaps = true;
  CHECK(total(step, strategy.offload) == step.device);
}

TEST_CASE("offload: of a rank's state the fraction leaves the device, and pinned gradients come beside it") {
  const Transformer model = read_model("llama-3-8b");
  const ModelState whole = model_state(model, {}, Workload{}, held_parameters);
  const ModelState half = model_state(model, {.offload = {.optimizer = {0.5}}}, Workload{}, held_parameters);
  CHECK(half.optimizer == Bytes(6e9));
  CHECK(half.on_host == Bytes(6e9 + 2e9));
  CHECK(half.weights == whole.weights);
  CHECK(half.gradients == whole.gradients);
  CHECK(whole.on_host == Bytes(0));
  CHECK(total(whole) - total(half) == Bytes(6e9));
}

TEST_CASE("offload: the memory of a host is a limit beside the device's") {
  const Plan none = account(evaluate(offloading(0)));
  CHECK_FALSE(none.host.has_value());
  const Request all = offloading(1);
  const Plan offloaded = account(evaluate(all));
  REQUIRE(offloaded.host.has_value());
  CHECK(offloaded.host->devices == 8);
  CHECK(offloaded.host->needed == 8.0 * offloaded.ranks.front().state.on_host);
  CHECK(peak(offloaded) < peak(none));
  CHECK(offloaded.timing->iteration.total > none.timing->iteration.total);

  Request small = all;
  small.system.host->memory = Bytes(100e9);
  const Evaluation evaluation = evaluate(small);
  REQUIRE(std::holds_alternative<Infeasible>(evaluation));
  CHECK(std::get<Infeasible>(evaluation).limit == "host_memory");
  CHECK(std::get<Infeasible>(evaluation).needed == offloaded.host->needed);
  CHECK(std::get<Infeasible>(evaluation).available == Bytes(100e9));

  Request unknown = all;
  unknown.system.host.reset();
  CHECK_THROWS_AS(evaluate(unknown), InputError);
}

}  // namespace headroom

// Frozen weights of products of fewer than 16 bits.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/plan/composer.hpp"

namespace headroom {

TEST_CASE(
    "precision: frozen weights in the type alone need no sharding, take its copies and no time of a step") {
  Request request{.model = read_model("llama-3-8b"),
                  .system = read_system("dgx-h100-80g"),
                  .strategy = {.tensor_parallel = 2,
                               .data_parallel = 4,
                               .sequence_parallel = true,
                               .precision = Precision::fp8,
                               .lora = {.rank = 16}},
                  .workload = {.global_batch = 32, .sequence = 8192}};
  const Parameters held = parameters_by_rank(request.model, request.strategy, request.workload).front();
  const Plan beside = account(evaluate(request));
  request.strategy.fp8_param_gather = true;
  CHECK(illegalities(request.model, request.strategy, request.workload, request.software).empty());
  const Plan alone = account(evaluate(request));
  CHECK(held.narrow_dense > 0);
  CHECK(beside.ranks.front().state.weights - alone.ranks.front().state.weights ==
        Bytes(2 * held.narrow_dense));
  const auto without_step = [](const Plan& plan) {
    return plan.timing->iteration.total - plan.timing->iteration.breakdown.optimizer;
  };
  CHECK(without_step(alone).count() == doctest::Approx(without_step(beside).count()).epsilon(1e-12));
  // Weights of 16 bits are cast in every iteration, these never.
  CHECK(alone.timing->iteration.breakdown.optimizer < 0.1 * beside.timing->iteration.breakdown.optimizer);
  request.strategy.lora = {};  // and weights that are stepped are gathered
  CHECK(illegalities(request.model, request.strategy, request.workload, request.software).front().where ==
        "fp8_param_gather");
}

}  // namespace headroom

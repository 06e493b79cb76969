// Linears that stay at 16 bits in every layer of a model of fewer: what they save, weigh and take, and where they cannot.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/model/precision_ops.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/composer.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

using namespace symbols;
using tests::llama;
using tests::with_shared;

constexpr PrecisionModules pair_of(PrecisionModule x, PrecisionModule y) {
  PrecisionModules modules = x;
  modules.insert(y);
  return modules;
}

constexpr Expr saved_with_modules(const Architecture& architecture, Precision precision,
                                  const PrecisionModules& modules = {}) {
  const OpTable table = layer_in(layer_ops(architecture), precision, {.bf16_modules = modules});
  return kept_bytes(stored_tensors(table, {})) / (s * b);
}

Request mixtral_with_modules(Precision precision, const PrecisionModules& modules = {}) {
  Request request{.model = read_model("mixtral-8x7b"),
                  .system = read_system("dgx-h100-80g"),
                  .strategy = {.data_parallel = 8, .expert_parallel = 8, .precision = precision},
                  .workload = {.global_batch = 32, .sequence = 4096}};
  request.strategy.precision_scope.bf16_modules = modules;
  request.system.memory = Bytes(1e12);
  return request;
}

Plan plan_with_modules(const Request& request) { return account(evaluate(request)); }

bool refuses_modules(const Request& request) {
  const auto problems = illegalities(request.model, request.strategy, request.workload, request.software);
  return std::any_of(problems.begin(), problems.end(),
                     [](const Problem& problem) { return problem.where == "bf16_modules"; });
}

}  // namespace

TEST_CASE("precision modules: a linear at 16 bits keeps its input so, and no copy of what others keep") {
  constexpr Expr fp8 = saved_with_modules(llama, Precision::fp8);
  // The normalized tokens at 2 bytes in place of 1, and of the context no copy beside the one that attention keeps.
  static_assert(saved_with_modules(llama, Precision::fp8, PrecisionModule::linear_qkv) == fp8 + h);
  static_assert(saved_with_modules(llama, Precision::fp8, PrecisionModule::linear_proj) == fp8 - a * e);
  static_assert(saved_with_modules(llama, Precision::fp8, PrecisionModule::attention) == fp8 + h - a * e);
  static_assert(saved_with_modules(llama, Precision::fp8, PrecisionModule::mlp) == fp8 + h + f);
  static_assert(
      saved_with_modules(llama, Precision::fp8, pair_of(PrecisionModule::attention, PrecisionModule::mlp)) ==
      saved_with_modules(llama, Precision::bf16));
  // The shared experts' input is the router's.
  static_assert(saved_with_modules(with_shared, Precision::fp8, PrecisionModule::shared_experts) ==
                saved_with_modules(with_shared, Precision::fp8) + u);
}

TEST_CASE("precision modules: weights, memory and time lie between those of both precisions") {
  const auto weights = [](const Plan& plan) { return plan.ranks.front().state.weights.count(); };
  const auto seconds = [](const Plan& plan) { return plan.timing->iteration.total; };
  const Plan plain = plan_with_modules(mixtral_with_modules(Precision::bf16));
  const Plan narrow = plan_with_modules(mixtral_with_modules(Precision::fp8));
  const Plan experts = plan_with_modules(mixtral_with_modules(Precision::fp8, PrecisionModule::experts));
  const Plan attention = plan_with_modules(mixtral_with_modules(Precision::fp8, PrecisionModule::attention));
  // The linears of a layer are those of both: what copies one does without, the other has.
  CHECK(weights(experts) + weights(attention) == doctest::Approx(weights(plain) + weights(narrow)));
  CHECK(seconds(narrow) < seconds(attention));
  CHECK(seconds(attention) < seconds(experts));
}

TEST_CASE("precision modules: what predicts tokens further ahead may stay at 16 bits") {
  Request request{.model = read_model("deepseek-v3"), .system = read_system("h800")};
  const auto kind_in = [&](const PrecisionModules& modules, const std::string& name) {
    Strategy strategy{.precision = Precision::fp8_blockwise};
    strategy.precision_scope.bf16_modules = modules;
    const ModelLayers layers = layers_of(request.model, strategy);
    const auto found = std::find_if(layers.kinds.begin(), layers.kinds.end(),
                                    [&](const LayerKind& kind) { return kind.name == name; });
    REQUIRE(found != layers.kinds.end());
    return std::any_of(found->ops.ops().begin(), found->ops.ops().end(),
                       [](const Op& op) { return multiplies_narrow(op); });
  };
  for (const char* const name : {"mtp_input", "mtp_layer"}) {
    CHECK(kind_in({}, name));
    CHECK_FALSE(kind_in(PrecisionModule::mtp, name));
  }
  CHECK(kind_in(PrecisionModule::mtp, "moe"));
}

TEST_CASE(
    "precision modules: what is not in the model, leaves nothing or has weights in the type is refused") {
  CHECK_FALSE(refuses_modules(mixtral_with_modules(Precision::fp8, PrecisionModule::attention)));
  CHECK(refuses_modules(mixtral_with_modules(Precision::bf16, PrecisionModule::attention)));
  for (const PrecisionModule absent :
       {PrecisionModule::mlp, PrecisionModule::shared_experts, from_name<PrecisionModule>("mamba").value(),
        PrecisionModule::latent_proj, PrecisionModule::mtp}) {
    CAPTURE(std::string(name_of(absent)));
    CHECK(refuses_modules(mixtral_with_modules(Precision::fp8, absent)));
  }
  CHECK(refuses_modules(
      mixtral_with_modules(Precision::fp8, pair_of(PrecisionModule::attention, PrecisionModule::experts))));
  Request gathered = mixtral_with_modules(Precision::fp8, PrecisionModule::attention);
  gathered.strategy.data_sharding = DataSharding::zero1;
  gathered.strategy.fp8_param_gather = true;
  CHECK(refuses_modules(gathered));
  gathered.model.mtp_layers = 1;
  gathered.strategy.precision_scope.bf16_modules = PrecisionModule::mtp;
  CHECK_FALSE(refuses_modules(gathered));
}

TEST_CASE("precision modules: widths that are no multiples matter to linears in the type alone") {
  Request request = mixtral_with_modules(Precision::fp8);
  request.model.architecture.experts->feedforward = 14330;
  const auto problems = [&] {
    return illegalities(request.model, request.strategy, request.workload, request.software).size();
  };
  CHECK(problems() == 1);
  request.strategy.precision_scope.bf16_modules = PrecisionModule::experts;
  CHECK(problems() == 0);
}

TEST_CASE("precision modules: a composer prices one set of them after another as a fresh one does") {
  const Request base = mixtral_with_modules(Precision::fp8);
  Composer composer(base);
  for (const PrecisionModules& modules : {PrecisionModules{}, PrecisionModules(PrecisionModule::attention),
                                          PrecisionModules(PrecisionModule::experts)}) {
    const Request asked = mixtral_with_modules(Precision::fp8, modules);
    const Plan kept = account(composer.evaluate(asked.strategy));
    const Plan fresh = plan_with_modules(asked);
    CHECK(peak(kept) == peak(fresh));
    CHECK(kept.timing->iteration.total == fresh.timing->iteration.total);
  }
}

}  // namespace headroom

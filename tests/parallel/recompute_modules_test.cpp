// What Megatron-Core's words for recomputation come to.
#include "headroom/parallel/recompute_modules.hpp"

#include <doctest/doctest.h>

#include "headroom/hardware/software.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {

TEST_CASE("recompute modules: Megatron-Core's parts of a layer as ops") {
  const OpTable table = layer_ops({});
  const auto named = [&](std::vector<std::string> names) {
    return recomputed_ops_of(table, {.policy = RecomputePolicy::ops, .ops = std::move(names)}, {});
  };
  CHECK(named({"core_attn"}) == recomputed_ops_of(table, {.policy = RecomputePolicy::selective}, {}));
  // Norms drop what linears have saved; the MLP is a checkpoint, whose output nobody saves.
  CHECK(named({"layernorm"}) == named({"norm_1", "norm_2"}));
  CHECK(named({"mlp"}).ops == named({"mlp_up", "activation", "mlp_down"}).ops);
  CHECK(named({"mlp"}).discarded == OpSet());
  CHECK(named({"moe_act"}) == RecomputedOps{});
  const Strategy strategy{.recompute = {.policy = RecomputePolicy::ops, .ops = {"moe_act"}}};
  const std::vector<Problem> problems =
      illegalities(read_model("llama-3-8b"), strategy, {.global_batch = 1, .sequence = 8192}, {});
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].rule.starts_with("'moe_act' is not an op or a module of this layer"));
}

TEST_CASE("recomputation: layers of multi-token prediction have a checkpoint each") {
  Transformer model = read_model("llama-3-8b");
  const Workload workload{.global_batch = 1, .sequence = 8192};
  Strategy strategy{.recompute = {.policy = RecomputePolicy::full, .layers = 2}};
  strategy.recompute.method = RecomputeMethod::uniform;
  CHECK(illegalities(model, strategy, workload, {}).empty());
  model.mtp_layers = 1;
  CHECK(illegalities(model, strategy, workload, {}) ==
        std::vector{Problem{"recompute_layers",
                            "must be 1 with `recompute_method` uniform when the model has `mtp_layers`"}});
  strategy.recompute.method = RecomputeMethod::block;
  CHECK(illegalities(model, strategy, workload, {}).empty());
}

}  // namespace headroom

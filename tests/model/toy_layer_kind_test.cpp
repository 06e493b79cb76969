// A kind of layer that no model has, taught through public headers only: a pair of linears behind the MLP, the second
// with weights of a class of its own. What it keeps, holds, computes and costs follows from its table.
#include <doctest/doctest.h>

#include "headroom/answer/explain.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/report/explain.hpp"
#include "headroom/time/iteration_end.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

// The pair narrows to as many elements as there are heads, and widens again.
constexpr OpTable toy_ops(const Architecture& architecture) {
  using namespace symbols;
  OpBuilder layer{.arch = architecture};
  const ValueId input = layer.table.value({"layer input", s * b * h, architecture.kernels.residual_dtype});
  const ValueId attended = attention(layer, layer.norm("norm_1", input));
  const ValueId middle = layer.residual("residual_1", attended, input);
  const ValueId expanded = mlp(layer, layer.norm("norm_2", middle));
  const ValueId narrow = layer.table.value({"narrow", s * b * a, Dtype::half, Placement::split});
  layer.linear("toy_narrow", expanded, {narrow},
               {OpBuilder::of_tokens({h, Placement::whole}, {{a, Placement::split}})}, {});
  const ValueId wide = layer.table.value({"wide", s * b * h});
  layer.linear("toy_widen", narrow, {wide},
               {OpBuilder::of_tokens({a, Placement::split}, {{h, Placement::whole}})}, {});
  layer.residual("residual_2", wide, middle);

  OpTable table;
  for (const Value& value : layer.table.values()) table.value(value);
  for (Op op : layer.table.ops()) {
    if (op.name == "toy_widen") {
      op.weights = WeightClass::expert;
      op.products[0].inner.placement = Placement::expert_split;
    }
    table.op(op);
  }
  return table;
}

constexpr std::size_t dense = 0, toy = 1;

// Embedding, two dense layers, six toys, head.
ModelLayers toy_model(const Transformer& model) {
  ModelLayers layers = layers_of(model);
  layers.kinds[dense].count = 2;
  layers.kinds.insert(layers.kinds.begin() + toy,
                      {.name = "toy", .count = 6, .ops = toy_ops(model.architecture)});
  layers.runs = {{2, 1}, {dense, 2}, {toy, 6}, {3, 1}};
  return layers;
}

k22::Run toy_run(std::int64_t pipeline_parallel = 4) {
  k22::Run run = k22::gpt_22b();
  run.model.layers = 8;
  run.strategy.pipeline_parallel = pipeline_parallel;
  run.strategy.recompute = {};
  return run;
}

const Sharding sharded{.tensor = true, .sequence = true};

}  // namespace

TEST_CASE("toy layer kind: it keeps, holds and computes what a dense layer does, and its pair") {
  using namespace symbols;
  const OpTable plain = layer_ops({});
  const OpTable table = toy_ops({});
  CHECK(kept_bytes(stored_tensors(table, sharded)) - kept_bytes(stored_tensors(plain, sharded)) ==
        2 * s * b * h / t + 2 * s * b * a / t);
  CHECK(parameters(table, sharded) - parameters(plain, sharded) == a * h / t + a * h);
  CHECK(forward_flops(table, {}, every_op(table)) - forward_flops(plain, {}, every_op(plain)) ==
        4 * s * b * h * a);
  CHECK(collectives(table, sharded).size() == collectives(plain, sharded).size() + 2);
  // Weights of experts are not divided by the tensor parallelism of the rest.
  CHECK(parameters(table, sharded, WeightClass::expert) == a * h);
}

TEST_CASE("toy layer kind: virtual stages hold the kinds in the order of the model") {
  const k22::Run run = toy_run();
  const std::vector<StagePlace> places = stage_places(toy_model(run.model), run.strategy);
  REQUIRE(places.size() == 4);
  CHECK(places[0].of_kind == KindCounts{2, 0, 1, 0});
  CHECK(places[1].of_kind == KindCounts{0, 2, 0, 0});
  CHECK(places[3].of_kind == KindCounts{0, 2, 0, 1});
  Strategy uneven = run.strategy;
  uneven.stage_layers = {1, 3, 2, 2};
  CHECK(stage_places(toy_model(run.model), uneven)[1].of_kind == KindCounts{1, 2, 0, 0});
}

TEST_CASE("toy layer kind: a stage keeps the sum over its kinds, and recomputes the first of them") {
  k22::Run run = toy_run(1);
  run.strategy.recompute = {.policy = RecomputePolicy::full, .layers = 3};
  const ModelLayers layers = toy_model(run.model);
  const Bindings letters = bindings(run.model, run.strategy, run.workload);
  const ModelActivations parts = evaluate(
      model_activation_exprs(layers, sharding_of(run.model, run.strategy), run.strategy, Detail::paper),
      letters);
  const StageActivations stage =
      stage_activations(parts, stage_places(layers, run.strategy).front(), run.strategy.recompute);
  REQUIRE(stage.layers.size() == 3);
  CHECK(stage.layers[0] ==
        CheckpointRun{2, parts.kinds[dense].recomputed.kept, parts.kinds[dense].recomputed.recomputed});
  CHECK(stage.layers[1] ==
        CheckpointRun{1, parts.kinds[toy].recomputed.kept, parts.kinds[toy].recomputed.recomputed});
  CHECK(stage.layers[2] == CheckpointRun{5, parts.kinds[toy].plain.kept, Bytes(0)});
  CHECK(stage.embedding == parts.kinds[2].plain.kept);
  CHECK(stage.head == parts.kinds[3].plain.kept);
}

TEST_CASE("toy layer kind: parameters of a rank by class, and what reduces them") {
  const k22::Run run = toy_run(1);
  const ModelLayers layers = toy_model(run.model);
  const Bindings letters = bindings(run.model, run.strategy, run.workload);
  const ModelParameters parts = evaluate(model_parameter_exprs(layers, {}, 1), letters);
  const Parameters held = parameters_of_rank(parts, {2, 6, 1, 1}, true);
  const double pair = 64.0 * 6144;
  CHECK(held.expert == 6 * pair);
  const ModelParameters plain = evaluate(model_parameter_exprs(layers_of(run.model), {}, 1), letters);
  CHECK(total(held) == parameters_of_rank(plain, {8, 1, 1}, true).dense + 12 * pair);

  const Strategy strategy{.data_parallel = 4, .data_sharding = DataSharding::zero1};
  const auto times = [&](const Parameters& parameters) {
    return data_parallel_times(parameters, strategy, Workload{}, 8, tests::performance(), tests::megatron());
  };
  CHECK(times(held).reduction == times(held.dense).reduction + times(Parameters(0, held.expert)).reduction);
  CHECK(times(held).reduction > times(held.dense).reduction);
  CHECK(model_state(run.model, strategy, Workload{}, held).optimizer.count() ==
        tests::about(12 * total(held) / 4));
}

TEST_CASE("toy layer kind: a stage costs the sum over its kinds") {
  const k22::Run run = toy_run(1);
  const ModelLayers layers = toy_model(run.model);
  const Setting setting = tests::setting(run);
  const ModelCost cost =
      model_cost(priced(model_work(layers, setting), setting), layers, run.strategy.recompute);
  REQUIRE(cost.kinds.size() == 4);
  CHECK(cost.kinds[dense] == tests::layer(run));
  const Collectives inserted = collectives(layers.kinds[toy].ops, setting.sharding);
  Seconds pair;
  std::int64_t found = 0;
  for (std::size_t i = 0; i < layers.kinds[toy].ops.ops().size(); ++i) {
    if (!layers.kinds[toy].ops.ops()[i].name.starts_with("toy_")) continue;
    pair += device_time(op_cost(layers.kinds[toy].ops, i, inserted, setting).forward);
    ++found;
  }
  CHECK(found == 2);
  CHECK(device_time(cost.kinds[toy].forward).count() >
        device_time(cost.kinds[dense].forward).count() + 0.9 * pair.count());
  const StageCost stage =
      stage_cost(cost, stage_places(layers, run.strategy).front(), run.strategy.recompute);
  CHECK(stage.forward == 2 * cost.kinds[dense].forward + 6 * cost.kinds[toy].forward + cost.kinds[2].forward +
                             cost.kinds[3].forward);
}

TEST_CASE("toy layer kind: the FLOPs of a model are a sum over its layers") {
  using namespace symbols;
  const k22::Run run = toy_run();
  const Expr eight = model_flops_of(layers_of(run.model));
  CHECK(eight == model_flops(run.model.architecture));
  CHECK(model_flops_of(toy_model(run.model)) ==
        eight.substitute(Symbol::layers, 8) + 3 * 6 * 4 * B * s * h * a);
}

TEST_CASE("toy layer kind: explanations show it beside the others") {
  const k22::Run run = toy_run();
  const ExplainReply reply =
      answer({run.model, run.strategy, run.workload, Detail::paper}, toy_model(run.model));
  REQUIRE(reply.kinds.size() == 4);
  CHECK(reply.kinds[toy].name == "toy");
  CHECK(reply.kinds[toy].kept.value > reply.kinds[dense].kept.value);
  CHECK(reply.first_stage.layers == 2);
  for (const Format format : {Format::json, Format::table, Format::csv}) {
    CHECK(render(reply, format).find("toy_widen") != std::string::npos);
  }
}

}  // namespace headroom

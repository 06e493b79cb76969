// Models with several kinds of layers, against models of one kind and against sums over layers.
#include "headroom/model/layer_kinds.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/answer/explain.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/frontier.hpp"

namespace headroom {
namespace {

Transformer two_kinds() {
  Transformer model = read_model("llama-2-7b", {"layers=8", "sequence=2048"});
  LayerDescription dense = own_layer(model);
  LayerDescription wide = dense;
  wide.name = "wide";
  wide.feedforward = 2 * dense.feedforward;
  wide.key_value_heads = 2;
  wide.architecture.kernels.attention = AttentionKernel::unfused;
  model.layer_kinds = {dense, wide};
  model.layer_runs = {{0, 3}, {1, 5}};
  return model;
}

Request request_of(const Transformer& model, const Strategy& strategy) {
  Request request{.model = model,
                  .system = read_system("dgx-a100-80g"),
                  .software = read_software("megatron-2022"),
                  .strategy = strategy};
  if (strategy.virtual_pipeline > 1) request.strategy.schedule = ScheduleKind::interleaved;
  request.workload = {.global_batch = 16, .sequence = model.sequence};
  return request;
}

const Plan& plan_of(const Evaluation& evaluation) { return account(evaluation); }

// A model all of whose layers are of a kind.
Transformer only(const Transformer& model, std::size_t kind, std::int64_t layers) {
  Transformer result = model;
  const LayerDescription& layer = model.layer_kinds[kind];
  result.feedforward = layer.feedforward;
  result.key_value_heads = layer.key_value_heads;
  result.architecture = layer.architecture;
  result.layers = layers;
  result.layer_kinds = {};
  result.layer_runs = {};
  return result;
}

const std::vector<Recomputation> recomputations{
    {},
    {.policy = RecomputePolicy::selective},
    {.policy = RecomputePolicy::full},
    {.policy = RecomputePolicy::full, .layers = 1},
    {.policy = RecomputePolicy::full, .method = RecomputeMethod::uniform, .layers = 3},
    {.policy = RecomputePolicy::ops, .layers = 2, .ops = {"activation", "norm_2"}}};

}  // namespace

TEST_CASE("layer kinds: kinds that are alike are one kind, to the bit") {
  Transformer alike = two_kinds();
  alike.layer_kinds[1] = alike.layer_kinds[0];
  alike.layer_kinds[1].name = "wide";
  const Transformer plain = only(alike, 0, 8);
  CHECK(layers_of(alike).kinds.size() == 3);
  CHECK(layers_of(alike).runs == layers_of(plain).runs);
  CHECK(end_loads(alike) == end_loads(plain));
  for (const Recomputation& recompute : recomputations) {
    const Strategy strategy{.tensor_parallel = 4, .pipeline_parallel = 4, .recompute = recompute};
    const Evaluation x = evaluate(request_of(alike, strategy));
    const Evaluation y = evaluate(request_of(plain, strategy));
    CHECK(plan_of(x).ranks == plan_of(y).ranks);
    CHECK(plan_of(x).timing == plan_of(y).timing);
  }
}

TEST_CASE("layer kinds: unlike names of the same table keep the same, to the bit, and take as long") {
  const Transformer plain = only(two_kinds(), 0, 8);
  const ModelLayers one = layers_of(plain);
  ModelLayers two = one;
  two.kinds.insert(two.kinds.begin() + 1, two.kinds[0]);
  two.kinds[1].name = "same";
  two.kinds[0].count = 3;
  two.kinds[1].count = 5;
  two.runs = {{2, 1}, {0, 3}, {1, 4}, {0, 0}, {1, 1}, {3, 1}};
  for (const Recomputation& recompute : recomputations) {
    const Strategy strategy{.tensor_parallel = 4, .pipeline_parallel = 2, .recompute = recompute};
    const Request request = request_of(plain, strategy);
    const Bindings letters = bindings(plain, strategy, request.workload);
    const Sharding sharding = sharding_of(plain, strategy);
    const ModelActivations of_one =
        evaluate(model_activation_exprs(one, sharding, strategy, Detail::exact), letters);
    const ModelActivations of_two =
        evaluate(model_activation_exprs(two, sharding, strategy, Detail::exact), letters);
    for (std::size_t stage = 0; stage < 2; ++stage) {
      const StageActivations x = stage_activations(of_one, stage_places(one, strategy)[stage], recompute);
      const StageActivations y = stage_activations(of_two, stage_places(two, strategy)[stage], recompute);
      CHECK(kept(x) == kept(y));
      CHECK(pass_activations(x) == pass_activations(y));
    }
  }
}

TEST_CASE("layer kinds: a deeper model goes on as it ends, a shallower one stops earlier") {
  Transformer model = two_kinds();
  using Runs = std::vector<LayerRun>;
  const auto runs = [&](Runs from, std::int64_t layers) {
    model.layer_runs = std::move(from);
    model.layers = 0;
    for (const LayerRun& run : model.layer_runs) model.layers += run.count;
    const Transformer other = with_layers(model, layers);
    CHECK(other.layers == layers);
    return other.layer_runs;
  };
  // Three dense ones, then wide ones.
  CHECK(runs({{0, 3}, {1, 5}}, 20) == Runs{{0, 3}, {1, 17}});
  CHECK(runs({{0, 3}, {1, 5}}, 4) == Runs{{0, 3}, {1, 1}});
  CHECK(runs({{0, 3}, {1, 5}}, 8) == Runs{{0, 3}, {1, 5}});
  // In turn, and in turn after a first one of its own.
  CHECK(runs({{0, 1}, {1, 1}, {0, 1}, {1, 1}}, 7) ==
        Runs{{0, 1}, {1, 1}, {0, 1}, {1, 1}, {0, 1}, {1, 1}, {0, 1}});
  CHECK(runs({{0, 3}, {1, 1}, {0, 1}, {1, 1}, {0, 1}}, 9) ==
        Runs{{0, 3}, {1, 1}, {0, 1}, {1, 1}, {0, 1}, {1, 1}, {0, 1}});
  // Two and one, with a part of the third: the first ones are of what repeats.
  CHECK(runs({{0, 2}, {1, 1}, {0, 2}, {1, 1}, {0, 1}}, 10) ==
        Runs{{0, 2}, {1, 1}, {0, 2}, {1, 1}, {0, 2}, {1, 1}, {0, 1}});
  // Nothing comes twice at the end: all of it does.
  CHECK(runs({{0, 2}, {1, 1}}, 6) == Runs{{0, 2}, {1, 1}, {0, 2}, {1, 1}});
  // What no layer is of any more is no kind of the model.
  model = two_kinds();
  CHECK(with_layers(model, 2).layer_runs == Runs{{0, 2}});
  CHECK(with_layers(model, 2).layer_kinds.size() == 1);
}

TEST_CASE("layer kinds: parameters, FLOPs and memory are sums over layers") {
  const Transformer model = two_kinds();
  const Transformer dense = only(model, 0, 1);
  const Transformer wide = only(model, 1, 1);
  const auto layer = [](const Transformer& one) {
    Transformer two = one;
    two.layers = 2;
    return parameter_count(two) - parameter_count(one);
  };
  const double ends = parameter_count(dense) - layer(dense);
  CHECK(parameter_count(model) == ends + 3 * layer(dense) + 5 * layer(wide));
  CHECK(layer(wide) != layer(dense));
  // Counted in a layer of each model, and of all kinds in their mean.
  const double of_dense = end_loads(dense).last;
  const double of_wide = end_loads(wide).last;
  CHECK(end_loads(model).last == doctest::Approx(8 / (3 / of_dense + 5 / of_wide)).epsilon(1e-12));

  // Eight ranks share the two key/value heads of one kind and divide those of the other.
  for (const std::int64_t t : {1, 8}) {
    for (const Recomputation& recompute : recomputations) {
      if (recompute.layers > 0) continue;
      const Strategy strategy{.tensor_parallel = t, .pipeline_parallel = 8, .recompute = recompute};
      const Evaluation both = evaluate(request_of(model, strategy));
      const Evaluation as_dense = evaluate(request_of(only(model, 0, 8), strategy));
      const Evaluation as_wide = evaluate(request_of(only(model, 1, 8), strategy));
      for (std::size_t rank = 0; rank < 8; ++rank) {
        const Evaluation& of_rank = rank < 3 ? as_dense : as_wide;
        CHECK(plan_of(both).ranks[rank] == plan_of(of_rank).ranks[rank]);
        CHECK(plan_of(both).timing->iteration.times.stages[rank] ==
              plan_of(of_rank).timing->iteration.times.stages[rank]);
      }
      CHECK(plan_of(both).timing->flops.model.count() ==
            doctest::Approx(3.0 / 8 * plan_of(as_dense).timing->flops.model.count() +
                            5.0 / 8 * plan_of(as_wide).timing->flops.model.count())
                .epsilon(1e-12));
    }
  }
}

TEST_CASE("layer kinds: the first K layers of a stage are recomputed in the order of the model") {
  Transformer model = two_kinds();
  model.layer_runs = {{0, 1}, {1, 1}, {0, 1}, {1, 1}, {0, 1}, {1, 1}, {0, 1}, {1, 1}};
  const ModelLayers layers = layers_of(model);
  Strategy strategy{.pipeline_parallel = 2};
  const std::vector<StagePlace> places = stage_places(layers, strategy);
  CHECK(places[1].runs == std::vector<LayerRun>{{0, 1}, {1, 1}, {0, 1}, {1, 1}});
  CHECK(recomputed_of_kind(places[0], {.policy = RecomputePolicy::full, .layers = 3}) ==
        KindCounts{2, 1, 0, 0});
  CHECK(recomputed_of_kind(places[0], {.policy = RecomputePolicy::full}) == KindCounts{2, 2, 0, 0});

  strategy.recompute = {.policy = RecomputePolicy::full, .method = RecomputeMethod::uniform, .layers = 3};
  const Request request = request_of(model, strategy);
  const ModelActivations parts = model_activations(model, strategy, request.workload, Detail::paper);
  const StageActivations stage = stage_activations(parts, places[0], strategy.recompute);
  REQUIRE(stage.layers.size() == 2);  // dense, wide, dense; wide
  CHECK(stage.layers[0].kept == parts.kinds[0].recomputed.kept);
  CHECK(stage.layers[0].recomputed ==
        parts.kinds[0].recomputed.recomputed + parts.kinds[1].plain.kept + parts.kinds[0].plain.kept);
  CHECK(stage.layers[1] ==
        CheckpointRun{1, parts.kinds[1].recomputed.kept, parts.kinds[1].recomputed.recomputed, {}});
}

TEST_CASE("layer kinds: ops of one kind, and of all") {
  const Transformer model = two_kinds();
  const ModelLayers layers = layers_of(model);
  const auto recomputed = [&](const std::vector<std::string>& ops, std::size_t kind) {
    return recomputed_ops_of(layers.kinds[kind], {.policy = RecomputePolicy::ops, .ops = ops}, {}).ops.size();
  };
  CHECK(recomputed({"activation"}, 0) == 1);
  CHECK(recomputed({"activation"}, 1) == 1);
  CHECK(recomputed({"wide.activation", "norm_1"}, 0) == 1);
  CHECK(recomputed({"wide.activation", "norm_1"}, 1) == 2);
  CHECK(recomputed({"softmax"}, 0) == 0);
  const auto problems = [&](const std::string& op) {
    const Strategy strategy{.recompute = {.policy = RecomputePolicy::ops, .ops = {op}}};
    return illegalities(model, strategy, {.global_batch = 1, .sequence = 2048}, {}).size();
  };
  CHECK(problems("softmax") == 0);
  CHECK(problems("wide.softmax") == 0);
  CHECK(problems("dense.softmax") == 1);
  CHECK(problems("broad.softmax") == 1);
}

TEST_CASE("layer kinds: a warning weighs kinds by their layers") {
  Transformer model = read_model("llama-2-7b", {"layers=40", "sequence=512"});
  LayerDescription flash = own_layer(model);
  flash.architecture.kernels.attention = AttentionKernel::flash;
  LayerDescription unfused = flash;
  unfused.name = "unfused";
  unfused.architecture.kernels.attention = AttentionKernel::unfused;
  model.layer_kinds = {flash, unfused};
  const auto saves_little = [&](std::int64_t of_flash) {
    model.layer_runs = {{0, of_flash}, {1, 40 - of_flash}};
    const Strategy strategy{.tensor_parallel = 8, .recompute = {.policy = RecomputePolicy::selective}};
    const Evaluation evaluation = evaluate(request_of(model, strategy));
    const std::vector<Warning>& warnings = plan_of(evaluation).warnings;
    return std::any_of(warnings.begin(), warnings.end(),
                       [](const Warning& warning) { return warning.code == "selective_saves_little"; });
  };
  CHECK(saves_little(39));
  CHECK_FALSE(saves_little(1));
}

TEST_CASE("layer kinds: the frontier's points are as evaluating what they recompute") {
  const Request request =
      request_of(two_kinds(), {.tensor_parallel = 8, .pipeline_parallel = 4, .sequence_parallel = true});
  const Frontier frontier(request);
  CHECK(frontier.layer_fronts().size() == 2);
  const std::vector<FrontierPoint> front = frontier.uniform();
  CHECK(front.size() > 10);
  CHECK(front.front() == frontier.point({}));
  bool by_kind = false;
  for (const FrontierPoint& point : front) {
    CHECK(frontier.point(point.recompute) == point);
    const std::optional<StagedPoint> staged = frontier.staged(point.peak);
    REQUIRE(staged.has_value());
    CHECK(staged->iteration <= point.iteration);
    for (const std::string& op : point.recompute.ops) by_kind = by_kind || op.starts_with("wide.");
  }
  CHECK(by_kind);
}

TEST_CASE("layer kinds: explanations have a table for each, with its own letters") {
  const Transformer model = two_kinds();
  const ExplainReply reply = answer(ExplainQuestion{
      .model = model, .strategy = {.tensor_parallel = 8}, .workload = {.global_batch = 1, .sequence = 2048}});
  REQUIRE(reply.kinds.size() == 4);
  CHECK(reply.kinds[1].name == "wide");
  CHECK(reply.kinds[1].count == 5);
  CHECK(reply.kinds[1].sizes ==
        std::vector<LetterValue>{{Symbol::feedforward, 22016}, {Symbol::key_value_heads, 2}});
  CHECK(reply.kinds[0].sizes.empty());
  CHECK(reply.kinds[1].kept.value > reply.kinds[0].kept.value);
}

}  // namespace headroom

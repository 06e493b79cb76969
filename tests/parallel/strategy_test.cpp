#include "headroom/parallel/strategy.hpp"

#include <functional>
#include <numeric>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/hardware/software.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/recomputed_ops.hpp"
#include "headroom/parallel/sharding.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

const Transformer model{.hidden = 1024,
                        .feedforward = 4096,
                        .heads = 16,
                        .key_value_heads = 4,
                        .head_size = 64,
                        .layers = 24,
                        .vocabulary = 50257,
                        .vocabulary_multiple = 128,
                        .sequence = 2048,
                        .max_positions = 2048};
const Workload batch{.global_batch = 64, .sequence = 2048};

// What is said about a legal strategy with one change, and about nothing else.
Problem problem(const std::function<void(Strategy&, Workload&)>& change) {
  Strategy strategy{.tensor_parallel = 4, .pipeline_parallel = 2, .data_parallel = 2, .micro_batch = 2};
  Workload workload = batch;
  CHECK(illegalities(model, strategy, workload, {}).empty());
  change(strategy, workload);
  const std::vector<Problem> problems = illegalities(model, strategy, workload, {});
  if (problems.size() == 1) return problems[0];
  return {.where = std::to_string(problems.size()) + " problems"};
}

Problem problem(const std::function<void(Strategy&)>& change) {
  return problem([&](Strategy& strategy, Workload&) { change(strategy); });
}

std::vector<std::int64_t> stages(Strategy strategy, std::int64_t layers) {
  Transformer other = model;
  other.layers = layers;
  return layers_by_stage(other, strategy);
}

}  // namespace

TEST_CASE("strategy: sizes start at 1") {
  CHECK(problem([](Strategy& it) { it.tensor_parallel = 0; }) ==
        Problem{"tensor_parallel", "must be at least 1, not 0"});
  CHECK(problem([](Strategy& it) { it.pipeline_parallel = -2; }) ==
        Problem{"pipeline_parallel", "must be at least 1, not -2"});
  CHECK(problem([](Strategy& it) { it.virtual_pipeline = 0; }) ==
        Problem{"virtual_pipeline", "must be at least 1, not 0"});
  CHECK(problem([](Strategy& it) { it.data_parallel = 0; }) ==
        Problem{"data_parallel", "must be at least 1, not 0"});
  CHECK(problem([](Strategy& it) { it.micro_batch = 0; }) ==
        Problem{"micro_batch", "must be at least 1, not 0"});
  CHECK(problem([](Strategy&, Workload& it) { it.global_batch = 0; }) ==
        Problem{"global_batch", "must be at least 1, not 0"});
  CHECK(problem([](Strategy&, Workload& it) { it.sequence = 0; }) ==
        Problem{"sequence", "must be at least 1, not 0"});
}

TEST_CASE("strategy: every problem is reported at once") {
  CHECK(illegalities(model, {.tensor_parallel = 0, .pipeline_parallel = 0, .micro_batch = 0}, batch, {})
            .size() == 3);
}

TEST_CASE("strategy: tensor parallelism divides the attention heads") {
  Transformer odd = model;
  odd.heads = odd.key_value_heads = 15;
  CHECK(
      illegalities(odd, {.tensor_parallel = 4}, batch, {}) ==
      std::vector<Problem>{{"tensor_parallel", "must divide the attention heads (15 % 4 = 3)"},
                           {"tensor_parallel",
                            "must divide the key/value heads or be a multiple of them (15 heads, 4 ranks)"}});
}

TEST_CASE("strategy: tensor parallelism divides the feed-forward width") {
  Transformer odd = model;
  odd.feedforward = 4098;
  CHECK(illegalities(odd, {.tensor_parallel = 4}, batch, {}) ==
        std::vector<Problem>{{"tensor_parallel", "must divide the feed-forward width (4098 % 4 = 2)"}});
}

TEST_CASE("strategy: key/value heads are divided or replicated") {
  Transformer grouped = model;
  for (const std::int64_t k : {1, 2, 4, 8, 16}) {
    grouped.key_value_heads = k;
    CHECK(illegalities(grouped, {.tensor_parallel = 4}, batch, {}).empty());
  }
  grouped.key_value_heads = 6;
  CHECK(
      illegalities(grouped, {.tensor_parallel = 4}, batch, {}) ==
      std::vector<Problem>{{"tensor_parallel",
                            "must divide the key/value heads or be a multiple of them (6 heads, 4 ranks)"}});
}

TEST_CASE("strategy: sequence parallelism divides the sequence") {
  CHECK(problem([](Strategy& strategy, Workload& workload) {
          strategy.sequence_parallel = true;
          workload.sequence = 2047;
        }) == Problem{"tensor_parallel",
                      "must divide the sequence length when `sequence_parallel` is on (2047 % 4 = 3)"});
}

TEST_CASE("strategy: interleaving needs a pipeline") {
  CHECK(problem([](Strategy& it) {
          it.pipeline_parallel = 1;
          it.virtual_pipeline = 2;
          it.schedule = ScheduleKind::interleaved;
        }) ==
        Problem{"virtual_pipeline",
                "needs `pipeline_parallel` of at least 2: one pipeline rank has nothing to interleave"});
}

TEST_CASE("strategy: interleaving and the interleaved schedule need each other") {
  CHECK(problem([](Strategy& it) { it.virtual_pipeline = 2; }) ==
        Problem{"schedule",
                "must be interleaved or zero-bubble-v or v-half or v-min or dualpipe-v or looped-bfs when "
                "`virtual_pipeline` is 2, not 1f1b"});
  CHECK(problem([](Strategy& it) { it.schedule = ScheduleKind::interleaved; }) ==
        Problem{"virtual_pipeline", "must be at least 2 for `schedule` interleaved"});
}

TEST_CASE("strategy: every virtual stage of an even layout has a layer") {
  CHECK(problem([](Strategy& it) { it.pipeline_parallel = 25; }) ==
        Problem{"pipeline_parallel", "times `virtual_pipeline` must not exceed the 24 layers (25 x 1)"});
  CHECK(problem([](Strategy& it) {
          it.virtual_pipeline = 14;
          it.schedule = ScheduleKind::interleaved;
        }) ==
        Problem{"pipeline_parallel", "times `virtual_pipeline` must not exceed the 24 layers (2 x 14)"});
}

TEST_CASE("strategy: a list of stage layers names every virtual stage") {
  CHECK(problem([](Strategy& it) {
          it.stage_layers = {8, 8, 8};
        }) == Problem{"stage_layers", "needs one entry per virtual stage: 2, not 3"});
}

TEST_CASE("strategy: a list of stage layers gives each at least one") {
  CHECK(problem([](Strategy& it) {
          it.stage_layers = {13, 12};
        }) == Problem{"stage_layers", "must add up to the 24 layers, not 25"});
  const Strategy empty_stage{.pipeline_parallel = 2, .stage_layers = {24, 0}};
  CHECK(
      illegalities(model, empty_stage, batch, {}) ==
      std::vector<Problem>{{"stage_layers", "must give each virtual stage between 1 and 24 layers, not 0"}});
}

TEST_CASE("strategy: the global batch is whole microbatches for every replica") {
  CHECK(problem([](Strategy&, Workload& it) { it.global_batch = 62; }) ==
        Problem{"global_batch",
                "must be a multiple of `micro_batch` times `data_parallel` (62 is not a multiple of 2 x 2)"});
}

TEST_CASE("strategy: an interleaved schedule works on groups of p microbatches") {
  CHECK(problem([](Strategy& strategy, Workload& workload) {
          strategy.virtual_pipeline = 2;
          strategy.schedule = ScheduleKind::interleaved;
          workload.global_batch = 60;
        }) == Problem{"global_batch",
                      "must give the interleaved schedule a multiple of `pipeline_parallel` microbatches (15 "
                      "microbatches, 2 ranks); or set `microbatch_group_size` 3"});
}

TEST_CASE("strategy: a pipeline gets no more microbatches than can be replayed") {
  CHECK(problem([](Strategy&, Workload& it) { it.global_batch = 4'000'004; }) ==
        Problem{"global_batch", "must give each pipeline at most 1000000 microbatches, not 1000001"});
}

TEST_CASE("strategy: layers to recompute are layers of the model, under full recomputation") {
  CHECK(problem([](Strategy& it) { it.recompute = {.policy = RecomputePolicy::full, .layers = 25}; }) ==
        Problem{"recompute_layers", "must be between 1 and the 24 layers, not 25"});
  CHECK(problem([](Strategy& it) { it.recompute = {.policy = RecomputePolicy::full, .layers = -1}; }) ==
        Problem{"recompute_layers", "must be between 1 and the 24 layers, not -1"});
  CHECK(problem([](Strategy& it) { it.recompute = {.policy = RecomputePolicy::selective, .layers = 2}; }) ==
        Problem{"recompute_layers", "needs `recompute` full or `recompute_ops`"});
}

TEST_CASE("strategy: uniform recomputation says how many layers share a checkpoint") {
  CHECK(problem([](Strategy& it) {
          it.recompute = {.policy = RecomputePolicy::full, .method = RecomputeMethod::uniform};
        }) == Problem{"recompute_method",
                      "uniform needs `recompute` full and `recompute_layers` (layers per checkpoint)"});
}

TEST_CASE("strategy: a checkpoint is sharded where tensor parallelism alone leaves it whole") {
  CHECK(problem([](Strategy& it) { it.recompute = {.distribute_saved_activations = true}; }) ==
        Problem{"distribute_saved_activations", "needs `recompute` full"});
  CHECK(problem([](Strategy& it) {
          it.sequence_parallel = true;
          it.recompute = {.policy = RecomputePolicy::full, .distribute_saved_activations = true};
        }) == Problem{"distribute_saved_activations",
                      "needs `tensor_parallel` above 1 and no `sequence_parallel`, which already shards "
                      "activation checkpoints"});
}

TEST_CASE("strategy: ops to recompute are ops of the layer") {
  const Problem found =
      problem([](Strategy& it) { it.recompute = {.policy = RecomputePolicy::ops, .ops = {"activaton"}}; });
  CHECK(found.where == "recompute_ops");
  CHECK(found.rule ==
        "'activaton' is not an op or a module of this layer (did you mean 'activation'?); use one of norm_1, "
        "qkv, scores, softmax, softmax_dropout, context, projection, residual_1, norm_2, mlp_up, activation, "
        "mlp_down, residual_2, core_attn, mlp, layernorm");
}

TEST_CASE("strategy: huge and negative numbers are problems, not overflows") {
  const std::vector<std::int64_t> sizes{INT64_MIN, -(std::int64_t{1} << 62), -2, std::int64_t{1} << 62,
                                        INT64_MAX};
  for (const std::int64_t x : sizes) {
    for (const std::int64_t y : sizes) {
      CHECK_FALSE(illegalities(model, {.pipeline_parallel = x, .virtual_pipeline = y, .stage_layers = {x, y}},
                               batch, {})
                      .empty());
      CHECK_FALSE(illegalities(model, {.data_parallel = x, .micro_batch = y}, batch, {}).empty());
      CHECK_FALSE(
          illegalities(model, {.tensor_parallel = x}, {.global_batch = y, .sequence = x}, {}).empty());
      CHECK_FALSE(illegalities(model, {.pipeline_parallel = 2, .stage_layers = {x, y}}, batch, {}).empty());
      const Recomputation recompute{.policy = RecomputePolicy::full, .layers = x};
      CHECK_FALSE(
          illegalities(model, {.recompute = recompute}, {.global_batch = y, .sequence = 1}, {}).empty());
    }
  }
}

TEST_CASE("strategy: devices and microbatches") {
  static_assert(devices({.tensor_parallel = 8, .pipeline_parallel = 35, .data_parallel = 8}) == 2240);
  static_assert(microbatches({.data_parallel = 2, .micro_batch = 4}, {.global_batch = 64}) == 8);
}

TEST_CASE("strategy: layers are even where they can be") {
  CHECK(stages({.pipeline_parallel = 4}, 24) == std::vector<std::int64_t>{6, 6, 6, 6});
  CHECK(stages({.pipeline_parallel = 2, .virtual_pipeline = 2}, 24) == std::vector<std::int64_t>{6, 6, 6, 6});
}

TEST_CASE("strategy: layers left over go to the stages before the last, late ones first") {
  CHECK(stages({.pipeline_parallel = 4}, 25) == std::vector<std::int64_t>{6, 6, 7, 6});
  CHECK(stages({.pipeline_parallel = 4}, 27) == std::vector<std::int64_t>{7, 7, 7, 6});
}

TEST_CASE("strategy: layers as they are listed") {
  CHECK(stages({.pipeline_parallel = 2, .stage_layers = {10, 14}}, 24) == std::vector<std::int64_t>{10, 14});
}

TEST_CASE("strategy: stages hold all layers, and none two more than another") {
  CHECK(rc::check([] {
    const std::int64_t p = *rc::gen::inRange(1, 20);
    const std::int64_t m = *rc::gen::inRange(1, 5);
    const std::int64_t layers = *rc::gen::inRange<std::int64_t>(p * m, 200);
    const auto counts = stages({.pipeline_parallel = p, .virtual_pipeline = m}, layers);
    RC_ASSERT(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == layers);
    const auto [fewest, most] = std::minmax_element(counts.begin(), counts.end());
    RC_ASSERT(*most - *fewest <= 1);
    RC_ASSERT(counts.back() == *fewest);
  }));
}

TEST_CASE("strategy: the paper's letters meet numbers") {
  const Bindings letters = bindings(model,
                                    {.tensor_parallel = 8,
                                     .pipeline_parallel = 4,
                                     .virtual_pipeline = 3,
                                     .data_parallel = 2,
                                     .micro_batch = 4},
                                    batch);
  const auto value = [&](Symbol symbol) { return letters[symbol]; };
  CHECK(value(Symbol::global_batch) == 64);
  CHECK(value(Symbol::microbatches) == 8);
  CHECK(value(Symbol::vocabulary) == 51200);
  CHECK(value(Symbol::key_value_heads) == 4);
  CHECK(value(Symbol::head_size) == 64);
  CHECK(value(Symbol::max_positions) == 2048);
  CHECK(bindings(model, {}, {.global_batch = 1, .sequence = 4096})[Symbol::max_positions] == 4096);
}

TEST_CASE("strategy: how the layer is divided") {
  CHECK(sharding_of(model, {.sequence_parallel = true}) == Sharding{});
  CHECK(sharding_of(model, {.tensor_parallel = 4}) == Sharding{.tensor = true});
  CHECK(sharding_of(model, {.tensor_parallel = 8, .sequence_parallel = true, .save_gathered_input = true}) ==
        Sharding{.tensor = true, .sequence = true, .kv_replicated = true, .save_gathered_input = true});
}

TEST_CASE("strategy: what a policy recomputes") {
  const OpTable table = layer_ops({});
  CHECK(recomputed_ops_of(table, {}, {}) == RecomputedOps{});
  CHECK(recomputed_ops_of(table, {.policy = RecomputePolicy::selective}, {}) ==
        RecomputedOps{.ops = core_attention_ops(table)});
  CHECK(recomputed_ops_of(table, {.policy = RecomputePolicy::full}, {}) ==
        RecomputedOps{.ops = every_op(table)});
  CHECK(recomputed_ops_of(table, {.policy = RecomputePolicy::ops, .ops = {"norm_1", "qkv"}}, {}) ==
        RecomputedOps{.ops = 3, .discarded = 3});
}

TEST_CASE("legality: autocast gives fp32 gradients and steps fp32 weights, whatever is asked") {
  Transformer model{.hidden = 64,
                    .feedforward = 256,
                    .heads = 4,
                    .key_value_heads = 4,
                    .head_size = 16,
                    .layers = 2,
                    .vocabulary = 128,
                    .sequence = 32,
                    .max_positions = 32};
  const Workload one{.global_batch = 1, .sequence = 32};
  const Strategy half{.gradient_dtype = Dtype::half, .optimizer = {.main_params = MainParams::none}};
  CHECK(illegalities(model, half, one, {}).empty());
  model.architecture.kernels.weight_copies = true;
  CHECK(illegalities(model, {}, one, {}).empty());
  const auto problems = illegalities(model, half, one, {});
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].where == "gradient_dtype");
  CHECK(problems[1].where == "main_params_dtype");
}

}  // namespace headroom

#include "headroom/memory/stage.hpp"

#include <numeric>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "papers/k22.hpp"

namespace headroom {
namespace {

const Transformer model{.hidden = 1024,
                        .feedforward = 4096,
                        .heads = 16,
                        .key_value_heads = 16,
                        .head_size = 64,
                        .layers = 8,
                        .vocabulary = 51200,
                        .vocabulary_multiple = 128,
                        .sequence = 2048,
                        .max_positions = 2048};
const Workload batch{.global_batch = 8, .sequence = 2048};
constexpr Bytes sbh(2048.0 * 1024);

std::vector<StageActivations> stages(const Strategy& strategy) {
  return stage_activations(model, strategy, batch, Detail::paper);
}

LayerActivations layer(const Strategy& strategy) {
  return layer_activations(model, strategy, batch, strategy.recompute, Detail::paper);
}

const LayerActivations plain = layer({});
const Recomputation full{.policy = RecomputePolicy::full};

}  // namespace

TEST_CASE("stage: a layer keeps 34sbh + 5as^2b") {
  CHECK(plain == LayerActivations{34 * sbh + Bytes(5.0 * 16 * 2048 * 2048), 0_B});
}

TEST_CASE("stage: what a policy drops is what its recomputation makes again") {
  for (const RecomputePolicy policy : {RecomputePolicy::selective, RecomputePolicy::full}) {
    const LayerActivations recomputed = layer({.recompute = {.policy = policy}});
    CHECK(recomputed.kept < plain.kept);
    CHECK(recomputed.kept + recomputed.recomputed == plain.kept);
  }
}

TEST_CASE("stage: a sharded checkpoint is whole again for its recomputation") {
  const Strategy whole{.tensor_parallel = 8, .recompute = full};
  Strategy sharded = whole;
  sharded.recompute.distribute_saved_activations = true;
  CHECK(layer(whole).kept == 2 * sbh);
  CHECK(layer(sharded).kept == 2 * sbh / 8);
  CHECK(layer(sharded).recomputed == layer({.tensor_parallel = 8}).kept);
}

TEST_CASE("stage: the embedding is on the first stage, the head on the last") {
  const auto four = stages({.pipeline_parallel = 4});
  REQUIRE(four.size() == 4);
  CHECK(four[0].embedding == sbh);
  CHECK(four[3].head == 4 * sbh + Bytes(4.0 * 2048 * 51200));
  for (const std::size_t i : {1U, 2U, 3U}) CHECK(four[i].embedding == 0_B);
  for (const std::size_t i : {0U, 1U, 2U}) CHECK(four[i].head == 0_B);
}

TEST_CASE("stage: one stage has both") {
  const auto one = stages({});
  REQUIRE(one.size() == 1);
  CHECK(one[0].layers == std::vector<CheckpointRun>{{8, plain.kept, 0_B}});
  CHECK(kept(one[0]) == 8 * plain.kept + one[0].embedding + one[0].head);
}

TEST_CASE("stage: every chunk of an interleaved schedule is a stage") {
  const auto chunks =
      stages({.pipeline_parallel = 2, .virtual_pipeline = 4, .schedule = ScheduleKind::interleaved});
  REQUIRE(chunks.size() == 8);
  for (const StageActivations& chunk : chunks) CHECK(layers_kept(chunk) == plain.kept);
}

TEST_CASE("stage: outputs are kept on all stages but the last, and only if they are not deallocated") {
  for (const StageActivations& stage : stages({.pipeline_parallel = 4})) CHECK(stage.output == 0_B);
  const auto four = stages({.pipeline_parallel = 4, .keep_pipeline_outputs = true});
  CHECK(four[0].output == 2 * sbh);
  CHECK(four[2].output == 2 * sbh);
  CHECK(four[3].output == 0_B);
  const auto sharded = stages({.tensor_parallel = 8,
                               .pipeline_parallel = 4,
                               .sequence_parallel = true,
                               .keep_pipeline_outputs = true});
  CHECK(sharded[0].output == 2 * sbh / 8);
}

TEST_CASE("stage: the logits of the last stage, which TP ranks may divide; none in chunks") {
  using namespace symbols;
  const auto logits = [](CrossEntropy loss, LossParallel parallel, Sharding sharding) {
    ModelLayers layers{.kinds = {}};
    layers.kinds.push_back(
        {.ops = head_ops(Architecture{.kernels = {.cross_entropy = loss}}, {.loss = parallel})});
    return logits_of_stage(layers, sharding);
  };
  const Sharding divided{.tensor = true};
  CHECK(logits(CrossEntropy::plain, LossParallel::vocabulary, {}) == 2 * s * b * v);
  CHECK(logits(CrossEntropy::plain, LossParallel::vocabulary, divided) == 2 * s * b * v / t);
  CHECK(logits(CrossEntropy::plain, LossParallel::gathered, divided) == 2 * s * b * v);
  CHECK(logits(CrossEntropy::chunked, LossParallel::vocabulary, {}) == Expr());
}

TEST_CASE("stage: full recomputation of all layers, a checkpoint each") {
  const LayerActivations recomputed = layer({.recompute = full});
  CHECK(stages({.recompute = full})[0].layers ==
        std::vector<CheckpointRun>{{8, recomputed.kept, recomputed.recomputed}});
}

TEST_CASE("stage: block recomputation checkpoints the first layers of every stage") {
  const Recomputation block{.policy = RecomputePolicy::full, .layers = 3};
  const LayerActivations recomputed = layer({.recompute = block});
  for (const StageActivations& stage : stages({.pipeline_parallel = 2, .recompute = block})) {
    CHECK(stage.layers ==
          std::vector<CheckpointRun>{{3, recomputed.kept, recomputed.recomputed}, {1, plain.kept, 0_B}});
  }
}

TEST_CASE("stage: block recomputation of more layers than a stage has is that of all") {
  const Recomputation block{.policy = RecomputePolicy::full, .layers = 7};
  const LayerActivations recomputed = layer({.recompute = block});
  CHECK(stages({.pipeline_parallel = 2, .recompute = block})[0].layers ==
        std::vector<CheckpointRun>{{4, recomputed.kept, recomputed.recomputed}});
}

TEST_CASE(
    "stage: uniform recomputation shares a checkpoint, whose recomputation makes all its layers again") {
  const Recomputation uniform{
      .policy = RecomputePolicy::full, .method = RecomputeMethod::uniform, .layers = 2};
  CHECK(stages({.recompute = uniform})[0].layers ==
        std::vector<CheckpointRun>{{4, 2 * sbh, 2 * plain.kept - 2 * sbh}});
}

TEST_CASE("stage: layers that do not fill a uniform checkpoint have a smaller one at the end") {
  const Recomputation uniform{
      .policy = RecomputePolicy::full, .method = RecomputeMethod::uniform, .layers = 3};
  CHECK(stages({.recompute = uniform})[0].layers ==
        std::vector<CheckpointRun>{{2, 2 * sbh, 3 * plain.kept - 2 * sbh},
                                   {1, 2 * sbh, 2 * plain.kept - 2 * sbh}});
}

TEST_CASE("stage: all layers are in some checkpoint, whatever the policy") {
  for (const RecomputeMethod method : {RecomputeMethod::block, RecomputeMethod::uniform}) {
    for (std::int64_t k = 1; k <= 8; ++k) {
      const Recomputation recompute{.policy = RecomputePolicy::full, .method = method, .layers = k};
      const StageActivations stage = stages({.recompute = recompute})[0];
      Bytes made_or_kept;
      for (const CheckpointRun& run : stage.layers) {
        made_or_kept += static_cast<double>(run.count) * (run.kept + run.recomputed);
      }
      CHECK(made_or_kept == 8 * plain.kept);
    }
  }
}

TEST_CASE("layer: key/value heads are repeated only where there are fewer of them than query heads") {
  Transformer model = k22::transformer("", 2, 1024, 16);
  model.architecture.positions = Positions::rotary;
  const Workload workload{.global_batch = 1, .sequence = 512};
  const auto kept = [&](KvSharing sharing) {
    model.architecture.kernels.kv_sharing = sharing;
    return layer_activations(model, {}, workload, {}, Detail::exact).kept;
  };
  // v is a view into the output of the linear, whose q and k it pins: 4 s b h, which copies would let go of.
  CHECK(kept(KvSharing::repeated) == kept(KvSharing::grouped));
  model.key_value_heads = 1;
  CHECK(kept(KvSharing::repeated) != kept(KvSharing::grouped));
}

TEST_CASE("layer: a change of memory order copies nothing but views where a microbatch is one sequence") {
  Transformer model = k22::transformer("", 2, 1024, 16);
  model.architecture.positions = Positions::rotary;
  model.architecture.kernels.attention = AttentionKernel::flash;
  const auto kept = [&](AttentionLayout layout, QkvLinear qkv, std::int64_t micro_batch) {
    model.architecture.kernels.layout = layout;
    model.architecture.kernels.qkv = qkv;
    const Workload workload{.global_batch = micro_batch, .sequence = 512};
    return layer_activations(model, {.micro_batch = micro_batch}, workload, {}, Detail::exact).kept;
  };
  using Order = AttentionLayout;
  CHECK(kept(Order::batch_first, QkvLinear::separate, 1) ==
        kept(Order::sequence_first, QkvLinear::separate, 1));
  // v is copied out of the linear's output, which leaves nothing pinned.
  CHECK(kept(Order::batch_first, QkvLinear::one, 1) == kept(Order::sequence_first, QkvLinear::separate, 1));
  // The projection keeps a copy of the context besides the one that attention keeps.
  const Bytes context(2.0 * 2 * 512 * 1024);
  CHECK(kept(Order::batch_first, QkvLinear::separate, 2) ==
        kept(Order::sequence_first, QkvLinear::separate, 2) + context);
}

TEST_CASE("stage: a model that states no loss has that of its training stack") {
  Transformer llama = read_model("llama-3-8b");
  const Workload workload{.global_batch = 1, .sequence = 8192};
  const auto kept = [&](const Software& software, const Strategy& strategy = {}) {
    return stage_activations(llama, strategy, workload, Detail::paper, software).back().head;
  };
  const double logits = 8192.0 * 128256;
  const Bytes megatron = kept(read_software("megatron-core-2025"));
  // The fp32 log-softmax in place of the softmax, and of the normalization before it two fp32 tensors in place of one of half.
  const Bytes normalization((4 + 4 - 2) * 8192.0 * 4096);
  const Strategy sharded{.data_parallel = 8, .data_sharding = DataSharding::zero3};
  CHECK(kept(read_software("torchtitan-2025"), sharded) - normalization == megatron);
  CHECK(megatron - kept(read_software("pytorch-fsdp-2023")) == Bytes(2 * logits));
  const Software chunked{.cross_entropy = CrossEntropy::chunked};
  CHECK(megatron - kept(chunked) == Bytes(4 * logits));
  llama.architecture.kernels.cross_entropy = CrossEntropy::vocabulary_parallel;
  CHECK(kept(chunked) == megatron);
}

}  // namespace headroom

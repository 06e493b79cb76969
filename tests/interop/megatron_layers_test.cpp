// Layers of Megatron-Core in scripts and overrides: windows, experts, latent attention, clamped activations.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests::megatron_layers {
namespace {

Transformer model_of(const std::string& flags) {
  const LaunchedRun run = read_launch_script(
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads "
      "16 "
      "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 16 --bf16 "
      "--vocab-size 32000 " +
          flags,
      "run.sh", {});
  REQUIRE(run.model);
  return *run.model;
}

// Of overrides of Megatron-Bridge without a recipe.
Transformer overridden(const std::string& words) {
  const LaunchedRun run = read_launch_script(
      "torchrun --nproc_per_node 8 pretrain_bridge.py model.num_layers=4 model.hidden_size=1024 "
      "model.ffn_hidden_size=4096 model.num_attention_heads=16 model.seq_length=2048 "
      "train.micro_batch_size=1 "
      "train.global_batch_size=16 model.vocab_size=32000 " +
          words,
      "run.sh", {});
  REQUIRE(run.model);
  return *run.model;
}

// "moe_sliding x 1, moe_full x 1, ...", as windows and experts of each run.
std::string runs_of(const Transformer& model) {
  std::string text;
  for (const LayerRun& run : model.layer_runs) {
    const Architecture& layer = model.layer_kinds[run.kind].architecture;
    text += std::to_string(run.count) + (layer.experts ? "m" : "d") + std::to_string(layer.window) + " ";
  }
  return text;
}

std::string error_of(const std::string& flags) {
  try {
    model_of(flags);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Megatron's layers: windows of all layers, of every n-th but one, and as listed") {
  CHECK(model_of("--window-size 127,0").architecture.window == 128);
  CHECK(model_of("--window-size '(127, 0)'").layer_runs.empty());
  CHECK(runs_of(model_of("--window-size 127,0 --window-attn-skip-freq 2")) == "1d128 1d0 1d128 1d0 ");
  CHECK(runs_of(model_of("--window-size 127,0 --window-attn-skip-freq '[1]*3+[0]'")) == "3d128 1d0 ");
  CHECK(runs_of(model_of("--window-size 127,0 --window-attn-skip-freq '[0]*4'")) == "");
  CHECK(runs_of(model_of("--window-size 63,0 --window-attn-skip-freq 2 --num-experts 8 --moe-layer-freq "
                         "'([0]*1+[1]*3)'")) == "1d64 1m0 1m64 1m0 ");
  CHECK(error_of("--window-size 127,0 --window-attn-skip-freq '[1,0]'").find("a list of 4 zeros and ones") !=
        std::string::npos);
}

TEST_CASE("Megatron's layers: MindSpeed's shared experts are as wide as the others, or as the MLP") {
  const auto shared = [](const std::string& flags) {
    const Transformer model = model_of("--num-experts 8 --swiglu " + flags);
    REQUIRE(model.architecture.experts);
    return model.architecture.experts->shared_feedforward;
  };
  CHECK(shared("--ffn-hidden-size 1536 --n-shared-experts 2") == 3072);
  CHECK(shared("--ffn-hidden-size 4096 --moe-ffn-hidden-size 768 --n-shared-experts 2") == 1536);
  CHECK(shared("--ffn-hidden-size 1536") == 0);
  CHECK(overridden("model.num_moe_experts=8 model.num_shared_experts=1")
            .architecture.experts->shared_feedforward == 4096);
}

TEST_CASE("Megatron's layers: what is not known leaves the rest") {
  const Transformer open = model_of("--window-size 127,0 --window-attn-skip-freq $N --num-experts 8");
  CHECK(open.architecture.experts);
  CHECK(open.architecture.window == 0);
  CHECK(error_of("--num-experts 8 --first-k-dense-replace 4").find("leaves no layer with experts") !=
        std::string::npos);
  CHECK(error_of("--window-size abc").find("such as 127,0") != std::string::npos);
  CHECK(error_of("--multi-latent-attention --kv-lora-rank 1.5").find("must be a whole number") !=
        std::string::npos);
  CHECK(model_of("--window-size -1,-1").architecture.window == 0);
  CHECK(error_of("--vocab-size 9223372036854775807 --tokenizer-type NullTokenizer") != "");
  CHECK_FALSE(
      overridden("model.multi_latent_attention=false model.kv_lora_rank=64").architecture.latent_attention);
}

TEST_CASE("Megatron's layers: gpt-oss's activation, and the token that NullTokenizer adds") {
  const Transformer clamped =
      model_of("--quick-geglu --glu-linear-offset 1.0 --activation-func-clamp-value 7.0");
  CHECK(clamped.architecture.activation == Activation::swiglu);
  CHECK(clamped.architecture.clamped_activation);
  CHECK_FALSE(model_of("--swiglu").architecture.clamped_activation);
  CHECK(overridden("model.gated_linear_unit=true model.activation_func=quick_gelu "
                   "model.activation_func_clamp_value=7.0")
            .architecture.clamped_activation);
  CHECK(model_of("--tokenizer-type NullTokenizer").vocabulary == 32001);
  CHECK(model_of("--tokenizer-type GPT2BPETokenizer").vocabulary == 32000);
}

TEST_CASE("Megatron's layers: overrides of Megatron-Bridge say the same, the last of each") {
  CHECK(overridden("model.num_query_groups=4 model.num_query_groups=8").key_value_heads == 8);
  const Transformer grouped =
      overridden("model.num_query_groups=4 model.qk_layernorm=true model.kv_channels=96");
  CHECK(grouped.key_value_heads == 4);
  CHECK(grouped.head_size == 96);
  CHECK(grouped.architecture.qk_norm == QkNorm::per_head);
  const Transformer biased = overridden("model.add_bias_linear=false model.add_qkv_bias=true");
  CHECK(biased.architecture.qkv_bias);
  CHECK_FALSE(biased.architecture.linear_bias);
  const Transformer latent = overridden(
      "model.add_bias_linear=false model.kv_lora_rank=256 model.qk_head_dim=64 model.num_moe_experts=8 "
      "model.moe_ffn_hidden_size=512 "
      "'model.moe_layer_freq=[0,1,1,1]' model.moe_router_topk=3 model.moe_router_pre_softmax=true");
  REQUIRE(latent.layer_runs.size() == 2);
  CHECK(latent.layer_runs[0].count == 1);
  const Architecture& moe = latent.layer_kinds[latent.layer_runs[1].kind].architecture;
  REQUIRE(moe.experts);
  CHECK(moe.experts->per_token == 3);
  CHECK(moe.experts->feedforward == 512);
  CHECK(moe.experts->scores == RouterScores::softmax_before_choice);
  CHECK(moe.experts->router_dtype == Dtype::half);  // Megatron-Core's own default
  REQUIRE(moe.latent_attention);
  CHECK(moe.latent_attention->kv_rank == 256);
  CHECK(moe.latent_attention->nope_head_size == 64);
  CHECK(runs_of(overridden("'model.window_size=[127,0]' model.window_attn_skip_freq=4")) == "3d128 1d0 ");
}

TEST_CASE("Megatron's layers: overrides say which modules graphs record, and how many groups shard") {
  const LaunchedRun run = read_launch_script(
      "torchrun --nnodes 2 --nproc_per_node 8 pretrain_bridge.py model.num_layers=4 model.hidden_size=1024 "
      "model.num_attention_heads=16 model.seq_length=2048 train.micro_batch_size=1 "
      "train.global_batch_size=16 "
      "model.context_parallel_size=2 ddp.use_distributed_optimizer=true "
      "ddp.num_distributed_optimizer_instances=4 model.cuda_graph_impl=transformer_engine "
      "'model.cuda_graph_modules=[attn,mlp]'",
      "run.sh", {});
  CHECK(value_in(run, "shard_size") == "4");  // of the 16 ranks with the same weights
  CHECK(value_in(run, "cuda_graphs") == "layers");
  CHECK(value_in(run, "cuda_graph_modules") == "attn,mlp");
}

TEST_CASE("Megatron's layers: sizes of a model with several kinds of layers change with their number") {
  const auto changed = [](const std::string& sizes) {
    return read_python_config(
        "def main():\n    cfg = deepseek_v3_pretrain_config(mtp_num_layers=0)\n" + sizes +
            "    cfg.model.num_moe_experts = 16\n    cfg.model.hidden_size = 7168 // 2\n"
            "    cfg.model.ffn_hidden_size = 9216\n    cfg.model.q_lora_rank = 768\n"
            "    pretrain(config=cfg)\nmain()\n",
        "train.py", "", {});
  };
  const LaunchedRun placed = changed("    cfg.model.num_layers = 2\n    cfg.model.moe_layer_freq = [0, 1]\n");
  REQUIRE(placed.model);
  const Transformer& model = *placed.model;
  CHECK(model.layers == 2);
  REQUIRE(model.layer_runs.size() == 2);
  CHECK(model.layer_runs[0].count == 1);
  const LayerDescription& dense = model.layer_kinds[model.layer_runs[0].kind];
  const LayerDescription& experts = model.layer_kinds[model.layer_runs[1].kind];
  CHECK_FALSE(dense.architecture.experts);
  CHECK(dense.feedforward == 9216);
  REQUIRE(experts.architecture.experts);
  CHECK(experts.architecture.experts->count == 16);
  CHECK(experts.architecture.experts->feedforward == 2048);
  CHECK(experts.architecture.latent_attention->q_rank == 768);
  CHECK(model.hidden == 3584);
  CHECK(model.mtp_layers == 0);
  CHECK(model.vocabulary == 129280);
  CHECK(says(placed, "the layers are those of deepseek-v3"));
  const LaunchedRun first = changed("    cfg.model.num_layers = 8\n");
  CHECK(first.model_name == "deepseek-v3");
  REQUIRE(first.model);
  REQUIRE(first.model->layer_runs.size() == 2);
  CHECK(first.model->layer_runs[0].count == 3);
  CHECK(first.model->layer_runs[1].count == 5);
  CHECK(first.model->hidden == 3584);
  CHECK(first.model->layer_kinds[first.model->layer_runs[1].kind].architecture.experts->count == 16);
  CHECK(says(first, "the kinds of the 8 layers are those of deepseek-v3 from the first on"));
  CHECK_THROWS_WITH_AS(changed("    cfg.model.num_layers = 3\n    cfg.model.moe_layer_freq = [0, 1]\n"),
                       doctest::Contains("must be a number of layers or a list of 3 times 0 or 1"),
                       InputError);
  CHECK_THROWS_WITH_AS(changed("    cfg.model.num_layers = 0\n"),
                       doctest::Contains("must be a number from 1"), InputError);
}

}  // namespace headroom::tests::megatron_layers

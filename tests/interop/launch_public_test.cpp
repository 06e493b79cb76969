// What public launch files showed: words that mean something else than they seem to, and jobs that start.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/readers.hpp"

namespace headroom::tests {
namespace {

const char* const model_of_arguments =
    " --num-layers 12 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
    "--max-position-embeddings 2048 --micro-batch-size 1 --bf16 ";

LaunchedRun script_run(const std::string& arguments) {
  return read_launch_script("torchrun --nproc_per_node 8 pretrain_gpt.py" + (model_of_arguments + arguments),
                            "run.sh", {});
}

LaunchedRun yaml_run(const std::string& text) { return read_tree_file(text, "run.yaml", {}); }

std::string setting(const LaunchedRun& run, std::string_view field) {
  for (const auto* const list : {&run.strategy, &run.stack}) {
    for (const LaunchSetting& it : *list) {
      if (it.field == field) return it.value;
    }
  }
  return "";
}

bool remarks(const LaunchedRun& run, LaunchRemarkKind kind, std::string_view part) {
  return std::any_of(run.remarks.begin(), run.remarks.end(), [&](const LaunchRemark& remark) {
    return remark.kind == kind && remark.text.find(part) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("public files: verl's trainer as overrides of a command, behind a flag with its value") {
  const LaunchedRun run = read_launch_script(
      "python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer.yaml' "
      "actor_rollout_ref.model.path=Qwen/Qwen3-8B "
      "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 "
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 trainer.n_gpus_per_node=8 trainer.nnodes=2",
      "run.sh", {});
  CHECK(run.framework == "verl");
  CHECK(run.software == "megatron-core-2025");
  CHECK(setting(run, "tensor_parallel") == "2");
  CHECK(setting(run, "micro_batch") == "4");
  CHECK(run.devices == 16);
}

TEST_CASE("public files: none is a choice, null is not") {
  const std::string titan =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = "
      "4096\n[parallelism]\ndata_parallel_shard_degree = 8\n"
      "[activation_checkpoint]\nmode = ";
  CHECK(setting(read_tree_file(titan + "\"none\"\n", "run.toml", {}), "recompute") == "none");
  CHECK(setting(read_tree_file(titan + "\"full\"\n", "run.toml", {}), "recompute") == "full");
  const LaunchedRun run = script_run("--vocab-size 32000 --position-embedding-type none");
  REQUIRE(run.model);
  CHECK(run.model->architecture.positions == Positions::none);
  CHECK_FALSE(remarks(run, LaunchRemarkKind::implied, "positions are learned"));
}

TEST_CASE("public files: a job without a number of GPUs has the fewest that hold its experts") {
  const LaunchedRun run = yaml_run(
      "base_model: Qwen/Qwen3-30B-A3B\nmicro_batch_size: 1\nsequence_len: 2048\nexpert_parallel_size: 4\n"
      "adapter: lora\nlora_r: 8\n");
  CHECK(run.devices == 4);
  CHECK(setting(run, "data_parallel") == "4");
  CHECK(run.software == "torchtitan-2025");
  CHECK(remarks(run, LaunchRemarkKind::assumed, "4 GPUs, the fewest that hold its experts"));
  const LaunchedRun dense = yaml_run(
      "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\nsequence_len: 2048\nadapter: lora\nlora_r: 8\n");
  CHECK_FALSE(dense.devices);
  CHECK(dense.nodes == 1);
}

TEST_CASE("public files: stacks that run what a script asks for") {
  CHECK(script_run("--vocab-size 32000 --use-megatron-fsdp --data-parallel-sharding-strategy "
                   "optim_grads_params --no-gradient-accumulation-fusion")
            .software == "nemo-2025");
  CHECK(script_run("--vocab-size 32000 --deepspeed --zero-stage 3").software == "deepspeed-2025");
  CHECK(script_run("--vocab-size 32000 --deepspeed --zero-stage 1").software == "megatron-deepspeed-2022");
}

TEST_CASE("public files: a vocabulary that is padded to a size, and Adam on the CPU") {
  const LaunchedRun run = script_run("--pad-vocab-size-to 250880 --optimizer cpu-adam");
  REQUIRE(run.model);
  CHECK(run.model->vocabulary == 250880);
  CHECK(run.model->vocabulary_multiple == 1);
  CHECK(setting(run, "optimizer") == "adam");
  CHECK(setting(run, "optimizer_offload_fraction") == "1");
}

TEST_CASE("public files: layers that Megatron-LM would not divide, and Mamba by shares") {
  const LaunchedRun run = script_run("--vocab-size 32000 --pipeline-model-parallel-size 8");
  CHECK(remarks(run, LaunchRemarkKind::assumed, "Megatron-LM refuses 12 layers on 8 stages"));
  CHECK_FALSE(remarks(script_run("--vocab-size 32000 --pipeline-model-parallel-size 4"),
                      LaunchRemarkKind::assumed, "refuses"));
  CHECK(run.refusals.size() == 1);
  CHECK(script_run("--vocab-size 32000 --pipeline-model-parallel-size 4").refusals.empty());
  // DeepSpeed's engine divides layers as it likes.
  CHECK(script_run("--vocab-size 32000 --deepspeed --zero-stage 1 --pipeline-model-parallel-size 8")
            .refusals.empty());
  const LaunchedRun mamba =
      script_run("--vocab-size 32000 --hybrid-attention-ratio 0.25 --hybrid-mlp-ratio 0.25");
  REQUIRE(mamba.model);
  CHECK(mamba.model->layers == 12);
  REQUIRE(mamba.model->layer_kinds.size() == 3);
  CHECK(mamba.model->layer_kinds.front().architecture.parts == LayerParts::mixer);
}

TEST_CASE("public files: bars of a hybrid pattern are the stages of the run") {
  const LaunchedRun run = script_run(
      "--vocab-size 32000 --pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M-|M*-|M-M|-M-'");
  REQUIRE(run.model);
  CHECK(run.model->layers == 11);
  CHECK(setting(run, "stage_layers") == "M-|M*-|M-M|-M-");
}

TEST_CASE("public files: GPT-NeoX ships partition_activations with every size") {
  const std::string text =
      "num_layers: 12\nhidden_size: 768\nnum_attention_heads: 12\nseq_length: 2048\n"
      "max_position_embeddings: 2048\npipe_parallel_size: 1\ntrain_micro_batch_size_per_gpu: 4\n"
      "checkpoint_activations: true\npartition_activations: true\nfp16: {enabled: true}\n"
      "zero_optimization: {stage: 1}\nmodel_parallel_size: ";
  const LaunchedRun one = yaml_run(text + "1\n");
  CHECK(setting(one, "distribute_saved_activations").empty());
  CHECK(remarks(one, LaunchRemarkKind::implied, "partition_activations does nothing"));
  CHECK(setting(yaml_run(text + "2\n"), "distribute_saved_activations") == "yes");
}

TEST_CASE("public files: modules of recomputation that no layer has are passed over") {
  const std::string experts =
      "--vocab-size 32000 --num-experts 8 --moe-grouped-gemm --moe-router-topk 2 --moe-ffn-hidden-size 512 "
      "--recompute-granularity selective --recompute-modules ";
  const LaunchedRun run = script_run(experts + "moe_act mlp layernorm");
  CHECK(setting(run, "recompute_ops") == "moe_act,layernorm");
  CHECK(remarks(run, LaunchRemarkKind::implied, "recomputation passes over mlp"));
  CHECK(setting(script_run(experts + "mlp"), "recompute") == "none");
  const LaunchedRun dense = script_run(
      "--vocab-size 32000 --recompute-granularity selective --recompute-modules mlp moe shared_experts");
  CHECK(setting(dense, "recompute_ops") == "mlp");
  // What Megatron-Core refuses stays.
  CHECK(setting(script_run(experts + "mla_up_proj"), "recompute_ops") == "mla_up_proj");
}

TEST_CASE("public files: nanotron's StarCoder2 has sizes that follow from others") {
  const std::string start =
      "parallelism: {dp: 2, pp: 1, tp: 1}\ntokens: {sequence_length: 4096, micro_batch_size: 1, "
      "batch_accumulation_per_replica: 1}\nmodel:\n  model_config:\n    is_starcoder2_config: true\n"
      "    hidden_size: 4608\n    num_attention_heads: 36\n    num_hidden_layers: 32\n"
      "    vocab_size: 49152\n    max_position_embeddings: 32768\n    activation_function: gelu\n";
  const LaunchedRun run =
      yaml_run(start + "    grouped_query: true\n    num_kv_heads: 4\n    sliding_window_size: 4096\n");
  REQUIRE(run.model);
  CHECK(run.model->feedforward == 4 * 4608);
  CHECK(run.model->key_value_heads == 4);
  CHECK(run.model->architecture.window == 4096);
  CHECK(run.model->architecture.tied_embeddings);
  CHECK(run.model->architecture.positions == Positions::rotary);
  CHECK(run.model->architecture.activation == Activation::gelu);
  CHECK(yaml_run(start).model->key_value_heads == 1);  // multi_query, if neither is written
  CHECK_THROWS_WITH_AS(yaml_run(start + "    grouped_query: true\n"), doctest::Contains("needs num_kv_heads"),
                       InputError);
  const LaunchedRun other = yaml_run(start + "    multi_query: true\n    intermediate_size: 9216\n");
  REQUIRE(other.model);
  CHECK(other.model->feedforward == 9216);
  CHECK(other.model->key_value_heads == 1);
}

TEST_CASE("public files: a tokenizer's file is that of the model whose folder it is in") {
  const LaunchedRun run = script_run(
      "--tokenizer-type GPTSentencePieceTokenizer --tokenizer-model data/llama-2-7b/tokenizer.model");
  REQUIRE(run.model);
  CHECK(run.model->vocabulary == 32000);
  CHECK(remarks(run, LaunchRemarkKind::implied, "that of llama-2-7b"));
}

}  // namespace headroom::tests

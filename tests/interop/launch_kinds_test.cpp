// What trainers' files train: pairs of answers, gated MLPs, models that see; and on how many nodes.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests {
namespace {

LaunchedRun kind_of_run(const std::string& text) { return read_tree_file(text, "run.yaml", {}); }

}  // namespace

TEST_CASE("kinds: axolotl's and torchtune's DPO count two sequences for a pair") {
  const LaunchedRun axolotl =
      kind_of_run("base_model: meta-llama/Llama-3.2-1B\nrl: dpo\nmicro_batch_size: 2\nsequence_len: 2048\n");
  CHECK(value_in(axolotl, "micro_batch") == "4");
  CHECK(value_in(axolotl, "reference_model") == "yes");
  const LaunchedRun kto =
      kind_of_run("base_model: meta-llama/Llama-3.2-1B\nrl: kto\nmicro_batch_size: 2\nsequence_len: 2048\n");
  CHECK(value_in(kto, "micro_batch") == "2");
  CHECK(value_in(kto, "reference_model") == "yes");
  const std::string tune =
      "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 4\n"
      "tokenizer:\n  max_seq_len: 1024\nloss:\n  _component_: torchtune.";
  CHECK(value_in(kind_of_run(tune + "rlhf.loss.DPOLoss\n"), "micro_batch") == "8");
  CHECK(value_in(kind_of_run(tune + "rlhf.loss.DPOLoss\n"), "reference_model") == "yes");
  CHECK(value_in(kind_of_run(tune + "modules.loss.LinearCrossEntropyLoss\n"), "micro_batch") == "4");
}

TEST_CASE("kinds: frozen linears of 8 bits") {
  const std::string axolotl = "base_model: meta-llama/Llama-3.2-1B\nsequence_len: 2048\nload_in_8bit: true\n";
  CHECK(value_in(kind_of_run(axolotl + "adapter: lora\nlora_r: 8\n"), "base_dtype") == "int8");
  CHECK(value_in(kind_of_run(axolotl), "base_dtype").empty());
  const LaunchedRun factory = kind_of_run(
      "model_name_or_path: meta-llama/Llama-3.2-1B\nstage: sft\nfinetuning_type: lora\ntemplate: llama3\n"
      "quantization_bit: 8\n");
  CHECK(value_in(factory, "base_dtype") == "int8");
}

TEST_CASE("kinds: GPT-NeoX's gated MLP, its multiple and its norms of queries and keys") {
  const std::string neox =
      "pipe_parallel_size: 0\nmodel_parallel_size: 1\nnum_layers: 4\nhidden_size: 5120\n"
      "num_attention_heads: 32\nseq_length: 4096\nmax_position_embeddings: 4096\n"
      "train_micro_batch_size_per_gpu: 1\n";
  const LaunchedRun gated = kind_of_run(neox + "mlp_type: gated\nmlp_multiple_of: 512\nqk_norm: true\n");
  REQUIRE(gated.model);
  CHECK(gated.model->feedforward == 13824);
  CHECK(gated.model->architecture.activation == Activation::swiglu);
  CHECK(gated.model->architecture.qk_norm == QkNorm::per_head);
  CHECK(says(kind_of_run(neox + "mlp_type: odd\n"), "read as an MLP of two matrices"));
}

TEST_CASE("kinds: litgpt's nodes count, where devices are all of a node") {
  const LaunchedRun run = kind_of_run(
      "checkpoint_dir: checkpoints/meta-llama/Llama-3.2-1B\ndevices: auto\nnum_nodes: 2\ntrain:\n"
      "  micro_batch_size: 1\n  global_batch_size: 16\n  max_seq_length: 2048\n");
  CHECK_FALSE(run.devices);
  CHECK(run.nodes == 2);
}

TEST_CASE("kinds: llm-foundry's offload of activations is told") {
  const std::string foundry =
      "max_seq_len: 2048\nglobal_train_batch_size: 16\ndevice_train_microbatch_size: 2\nmodel:\n"
      "  pretrained_model_name_or_path: meta-llama/Llama-3.2-1B\nfsdp_config:\n  sharding_strategy: "
      "FULL_SHARD\n"
      "  activation_cpu_offload: true\n";
  CHECK(says(kind_of_run(foundry), "activations on the host, which saves more GPU memory than is counted"));
  CHECK(value_in(kind_of_run(foundry + "  activation_checkpointing: true\n"), "offload_modules") ==
        "layer_input");
}

TEST_CASE("kinds: of a model that sees, the language model is read, which is told") {
  const LaunchedRun run = kind_of_run(
      "model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct\nfinetuning_type: full\nstage: sft\n"
      "template: qwen2_vl\ncutoff_len: 2048\n");
  CHECK(says(run, "the vision tower is left out"));
}

TEST_CASE("kinds: torchtitan's keys that it does not have are told") {
  const LaunchedRun run = read_tree_file(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\nlocal_batch_size = 1\n"
      "clear_cache_between_steps = true\n[optimizer]\nname = \"AdamW\"\nlr = 1e-4\nstate_dtype = "
      "\"bfloat16\"\n",
      "run.toml", {});
  CHECK(says(run, "clear_cache_between_steps"));
  CHECK(says(run, "state_dtype"));
  CHECK_FALSE(says(run, "lr = 1e-4: not known"));
}

TEST_CASE("kinds: NeMo's programs by Hydra's flags, and a recipe's own defaults") {
  const LaunchFolder folder;
  const LaunchedRun hydra = read_launched_run(folder.with(
      "run.sh",
      "python megatron_gpt_pretraining.py --config-path=conf --config-name=megatron_gpt_config "
      "trainer.devices=2 "
      "trainer.num_nodes=1 trainer.precision=16 model.micro_batch_size=4 model.global_batch_size=8 "
      "model.encoder_seq_length=512 model.hidden_size=768 model.num_layers=12 model.num_attention_heads=12 "
      "model.optim.name=distributed_fused_adam\n"));
  CHECK(hydra.devices == 2);
  CHECK(value_in(hydra, "data_sharding") == "zero1");
  CHECK(value_in(hydra, "precision") == "bf16");
  const LaunchedRun recipe = read_launched_run(folder.with("train.py", R"(
def configure():
    recipe = llm.llama3_8b.pretrain_recipe(name="x", num_nodes=1, num_gpus_per_node=8)
    recipe.trainer.strategy.pipeline_model_parallel_size = 2
    return recipe
)"));
  CHECK(value_in(recipe, "context_parallel") == "2");
  CHECK(value_in(recipe, "pipeline_parallel") == "2");
  CHECK(value_in(recipe, "global_batch") == "512");
  CHECK(value_in(recipe, "data_parallel") == "2");
}

TEST_CASE("kinds: a Trainer whose batch is DeepSpeed's, and a program of one's own under accelerate") {
  const LaunchFolder folder;
  folder.with("ds.json",
              R"({"train_batch_size": 32, "zero_optimization": {"stage": 1}, "fp16": {"enabled": true}})");
  const LaunchedRun trainer = read_launched_run(folder.with(
      "run.sh",
      "deepspeed --num_gpus 4 finetune.py --model_name_or_path bigscience/bloomz-560m --deepspeed ds.json "
      "--do_train --output_dir out --max_length 2048\n"));
  CHECK(trainer.devices == 4);
  CHECK(value_in(trainer, "data_sharding") == "zero1");
  CHECK(value_in(trainer, "global_batch") == "32");
  folder.with("acc.yaml",
              "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nmixed_precision: bf16\n"
              "num_processes: 8\n");
  const LaunchedRun own =
      read_launched_run(folder.with("run.sh",
                                    "accelerate launch --config_file acc.yaml train.py --batch-size 1 "
                                    "--gradient-accumulate-every 4 --model "
                                    "lmsys/vicuna-7b-v1.5 --seq-length 32768\n"));
  CHECK(own.devices == 8);
  CHECK(value_in(own, "micro_batch") == "1");
  CHECK(value_in(own, "global_batch") == "32");
  CHECK(value_in(own, "sequence") == "32768");
  CHECK(value_in(own, "data_sharding") == "zero3");
}

TEST_CASE("kinds: a model of Primus in a checkout of its own") {
  const LaunchFolder folder;
  folder.with(
      "primus/configs/models/megatron/base.yaml",
      "num_layers: 2\nswiglu: true\nnormalization: RMSNorm\nposition_embedding_type: rope\n"
      "add_bias_linear: false\nuntie_embeddings_and_output_weights: true\nmax_position_embeddings: 4096\n");
  folder.with("primus/configs/models/megatron/own_3B.yaml",
              "bases:\n  - base.yaml\nnum_layers: 28\nhidden_size: 2048\nffn_hidden_size: 7168\n"
              "num_attention_heads: 16\nvocab_size: 32000\n");
  const LaunchedRun run = read_launched_run(folder.with(
      "examples/megatron/run.yaml",
      "modules:\n  pre_trainer:\n    framework: megatron\n    model: own_3B.yaml\n    overrides:\n"
      "      micro_batch_size: 4\n      global_batch_size: 32\n      seq_length: 4096\n      num_layers: "
      "14\n"));
  REQUIRE(run.model);
  CHECK(run.model->hidden == 2048);
  CHECK(run.model->layers == 14);  // the run's own
  CHECK(run.model->architecture.activation == Activation::swiglu);
}

TEST_CASE(
    "kinds: Pai's tokenizer of Qwen 2 with what is added, and Megatron-DeepSpeed's spelling of RMSNorm") {
  const LaunchedRun run = read_launch_script(
      "torchrun --nproc_per_node 8 pretrain_qwen.py --num-layers 8 --hidden-size 1536 --num-attention-heads "
      "12 "
      "--ffn-hidden-size 8960 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 "
      "--global-batch-size 8 --bf16 --patch-tokenizer-type Qwen2Tokenizer --extra-vocab-size 293 "
      "--normalization rmsnorm\n",
      "run.sh", {});
  REQUIRE(run.model);
  CHECK(run.model->vocabulary == 151936);
  CHECK(run.model->architecture.normalization == Normalization::rms_norm);
}

TEST_CASE("kinds: a model file of Primus with experts and a tokenizer, and bases without an end") {
  const LaunchFolder folder;
  folder.with("primus/configs/models/megatron/moe.yaml",
              "bases: base.yaml\nnum_layers: 4\nhidden_size: 512\nffn_hidden_size: 2048\n"
              "num_attention_heads: 8\ntokenizer_type: Llama3Tokenizer\n");
  folder.with("primus/configs/models/megatron/base.yaml",
              "num_experts: 60\nmoe_router_topk: 8\nmoe_ffn_hidden_size: 1408\nswiglu: true\n");
  const std::string start = "modules:\n  pre_trainer:\n    framework: megatron\n    model: ";
  const std::string end =
      ".yaml\n    overrides:\n      micro_batch_size: 1\n      global_batch_size: 8\n      seq_length: "
      "2048\n";
  const LaunchedRun run = read_launched_run(folder.with("examples/megatron/run.yaml", start + "moe" + end));
  REQUIRE(run.model);
  REQUIRE(run.model->architecture.experts);
  CHECK(run.model->architecture.experts->count == 60);
  CHECK(run.model->architecture.experts->per_token == 8);
  CHECK(run.model->vocabulary == 128256);
  folder.with("primus/configs/models/megatron/loop.yaml", "bases:\n  - loop.yaml\n  - loop.yaml\n");
  const std::string loop = folder.with("examples/megatron/run.yaml", start + "loop" + end);
  CHECK_THROWS_WITH_AS(read_launched_run(loop), doctest::Contains("is based on itself"), InputError);
}

TEST_CASE("kinds: stages of a rank in Primus's names, by their number and by the layers of each") {
  const auto stages = [](const std::string& setting) {
    return value_in(
        kind_of_run("modules:\n  pre_trainer:\n    framework: megatron\n    model: llama3.1_8B.yaml\n"
                    "    overrides:\n      num_layers: 16\n      micro_batch_size: 1\n"
                    "      global_batch_size: 16\n      seq_length: 2048\n"
                    "      pipeline_model_parallel_size: 2\n      " +
                    setting + "\n"),
        "virtual_pipeline");
  };
  CHECK(stages("num_virtual_stages_per_pipeline_rank: 4") == "4");
  CHECK(stages("num_virtual_stages_per_pipeline_rank: null").empty());
  CHECK(stages("num_layers_per_virtual_pipeline_stage: 2") == "4");
  CHECK(stages("num_layers_per_virtual_pipeline_stage: 8").empty());
  CHECK_THROWS_WITH_AS(stages("num_layers_per_virtual_pipeline_stage: 3"),
                       doctest::Contains("must divide the layers of a rank (16 layers, PP 2)"), InputError);
}

TEST_CASE("kinds: llm-foundry's model that starts at random has the sizes that are written over it") {
  const LaunchFolder folder;
  const auto written = [&](const std::string& pretrained) {
    return read_launched_run(folder.with(
        "run.yaml", "model:\n  name: hf_causal_lm\n  pretrained: " + pretrained +
                        "\n  pretrained_model_name_or_path: mistralai/Mistral-7B-v0.1\n  config_overrides:\n"
                        "    num_hidden_layers: 16\n    vocab_size: 51200\n"
                        "max_seq_len: 4096\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 4\n"));
  };
  const LaunchedRun random = written("false");
  REQUIRE(random.model);
  CHECK(random.model->layers == 16);
  CHECK(random.model->vocabulary == 51200);
  CHECK(written("true").model->layers == 32);
}

TEST_CASE("kinds: llm-foundry's weights of 16 bits, and a teacher beside the model") {
  const auto written = [](const std::string& dtype) {
    return kind_of_run(
        "model:\n  name: hf_causal_lm\n  pretrained: true\n"
        "  pretrained_model_name_or_path: mistralai/Mistral-7B-v0.1\n"
        "  master_weights_dtype: " +
        dtype +
        "\n"
        "knowledge_distillation:\n  teacher_name_or_path: mistralai/Mistral-7B-v0.1\n"
        "fsdp_config:\n  sharding_strategy: FULL_SHARD\n  mixed_precision: DEFAULT\n"
        "precision: amp_bf16\n"
        "max_seq_len: 2048\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 4\n");
  };
  const LaunchedRun half = written("bf16");
  CHECK(half.framework == "llm-foundry");
  CHECK(value_in(half, "main_params_dtype") == "none");
  CHECK(value_in(half, "exp_avg_dtype") == "bf16");
  CHECK(value_in(half, "gradient_dtype") == "bf16");
  CHECK(says(half, ": a teacher, a second model beside the first"));
  const LaunchedRun full = written("fp32");
  CHECK(value_in(full, "main_params_dtype").empty());
  CHECK(value_in(full, "gradient_dtype") == "fp32");
  const LaunchedRun other = kind_of_run(
      "base_model: meta-llama/Llama-3.2-1B\nmicro_batch_size: 2\nsequence_len: 2048\n"
      "kd_teacher_path: meta-llama/Llama-3.1-8B\n");
  CHECK(std::any_of(other.remarks.begin(), other.remarks.end(), [](const LaunchRemark& remark) {
    return remark.kind == LaunchRemarkKind::unmodelled && remark.text.starts_with("kd_teacher_path");
  }));
}

TEST_CASE("kinds: DeepSpeed's BF16 optimizer shards at ZeRO stage 0") {
  const auto read = [](const std::string& dtype) {
    return read_launch_script(
        "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 "
        "--num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 "
        "--micro-batch-size 1 --global-batch-size 8 --zero-stage 0 --deepspeed " +
            dtype + "\n",
        "run.sh", {});
  };
  CHECK(value_in(read("--bf16"), "data_sharding") == "zero1");
  CHECK(value_in(read("--fp16"), "data_sharding") == "none");
  const auto neox = [](const std::string& dtype) {
    return read_tree_file(
        "{num_layers: 8, hidden_size: 512, num_attention_heads: 8, seq_length: 512, "
        "train_micro_batch_size_per_gpu: 4, pipe_parallel_size: 1, precision: " +
            dtype + "}",
        "run.yml", {});
  };
  CHECK(value_in(neox("bfloat16"), "data_sharding") == "zero1");
  CHECK(value_in(neox("fp16"), "data_sharding") == "none");
  const auto plain = [](const std::string& half) {
    return read_tree_file(R"({"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 0}, ")" +
                              half + R"(": {"enabled": true}})",
                          "ds.json", {});
  };
  CHECK(value_in(plain("bf16"), "data_sharding") == "zero1");
  CHECK(value_in(plain("fp16"), "data_sharding") == "none");
}

TEST_CASE("kinds: GPT-NeoX sums gradients in the dtype of the model with ZeRO") {
  const auto sums = [](const std::string& more) {
    return value_in(
        read_tree_file("num_layers: 8\nhidden_size: 512\nnum_attention_heads: 8\nseq_length: 512\n"
                       "train_micro_batch_size_per_gpu: 4\npipe_parallel_size: 1\n" +
                           more,
                       "run.yml", {}),
        "gradient_dtype");
  };
  CHECK(sums("precision: bfloat16\nzero_optimization: {stage: 1}\n") == "bf16");
  CHECK(sums("precision: bfloat16\nzero_optimization: {stage: 0}\n") == "fp32");
  CHECK(sums("precision: bfloat16\n") == "fp32");
  CHECK(sums("precision: bfloat16\nzero_optimization: {stage: 1}\n"
             "data_types: {grad_accum_dtype: fp32}\n") == "fp32");
  CHECK(sums("zero_optimization: {stage: 1}\n").empty());
}

TEST_CASE("kinds: adapters pass over targets that the model does not have, where it has others") {
  const LaunchFolder folder;
  const auto read = [&](const std::string& targets, const std::string& model = "DeepSeek-V3") {
    return read_launched_run(folder.with("run.sh", "swift sft --model deepseek-ai/" + model +
                                                       " --train_type lora "
                                                       "--lora_rank 8 --target_modules " +
                                                       targets + " --max_length 2048\n"));
  };
  const LaunchedRun run = read("q_proj k_proj o_proj");
  CHECK(value_in(run, "lora_targets") == "o_proj");
  CHECK(says(run, "adapters pass over q_proj,k_proj"));
  CHECK(value_in(read("k_proj"), "lora_targets") == "k_proj");  // is refused later
  CHECK(value_in(read("q_proj,o_proj", "DeepSeek-V2-Lite"), "lora_targets") == "q_b_proj,o_proj");
}

}  // namespace headroom::tests

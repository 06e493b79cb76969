// What is around a run: accelerate's options, programs that start others, forks, and trainers with files of their own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests {
namespace {

const char* const fsdp =
    "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 1\n  fsdp_sharding_strategy: "
    "FULL_SHARD\nmixed_precision: bf16\nnum_processes: 8\n";

LaunchedRun script(const std::string& text) { return read_launch_script(text, "run.sh", {}); }
LaunchedRun yaml(const std::string& text) { return read_tree_file(text, "run.yaml", {}); }

}  // namespace

TEST_CASE("around: options of DeepSpeed mean nothing where accelerate starts FSDP") {
  const LaunchFolder folder;
  folder.with("fsdp.yaml", fsdp);
  const auto run_with = [&](const std::string& options) {
    return read_launched_run(folder.with(
        "run.sh",
        "accelerate launch --config_file fsdp.yaml " + options +
            " train.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 "
            "--bf16 --max_length 4096\n"));
  };
  const LaunchedRun run = run_with("--gradient_accumulation_steps 4 --zero_stage 2");
  CHECK(run.software == "hf-trainer");
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(says(run, "accelerate reads it only with --use_deepspeed"));
  const LaunchedRun deepspeed = run_with("--use_deepspeed --zero_stage 2");
  CHECK(deepspeed.software == "deepspeed-2025");
  CHECK(value_in(deepspeed, "data_sharding") == "zero2");
}

TEST_CASE("around: weights that a trainer's file loads at 16 bits are FP32 under accelerate's FSDP") {
  const LaunchFolder folder;
  folder.with("fsdp.yaml", fsdp);
  folder.with("sft.yaml",
              "model_name_or_path: meta-llama/Llama-3.1-8B\ntorch_dtype: bfloat16\nbf16: true\n"
              "per_device_train_batch_size: 2\nmax_length: 4096\n");
  const LaunchedRun run =
      read_launched_run(folder.with("run.sh",
                                    "accelerate launch --config_file fsdp.yaml sft.py --config sft.yaml "
                                    "--per_device_train_batch_size 1\n"));
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(value_in(run, "main_params_dtype").empty());
  CHECK(value_in(run, "micro_batch") == "1");  // the command stands over the file
  CHECK(value_in(run, "sequence") == "4096");
}

TEST_CASE("around: the command behind a wrapper's -- is the run") {
  const std::string inner =
      " -- accelerate launch --mixed_precision bf16 --num_processes 8 --use_deepspeed --zero_stage 3 "
      "open_instruct/finetune.py --model_name_or_path meta-llama/Llama-3.1-8B --max_seq_length 4096 "
      "--per_device_train_batch_size 1 --gradient_accumulation_steps 2";
  const LaunchedRun run = script("python mason.py --num_nodes 8 --gpus 8" + inner);
  CHECK(run.software == "deepspeed-2025");
  CHECK(run.devices == 64);
  CHECK(value_in(run, "global_batch") == "128");
  CHECK(script("python submit.py --priority high" + inner).devices == 8);
}

TEST_CASE("around: slime trains with Megatron-LM on the GPUs of its actor") {
  const std::string text =
      "python3 train.py --actor-num-nodes 4 --actor-num-gpus-per-node 8 --colocate --hf-checkpoint /root/m "
      "--swiglu --num-layers 36 --hidden-size 2560 --ffn-hidden-size 9728 --num-attention-heads 32 "
      "--vocab-size 151936 --tensor-model-parallel-size 2 --global-batch-size 256 --rollout-batch-size 32 ";
  const LaunchedRun packed =
      script(text + "--use-dynamic-batch-size --max-tokens-per-gpu 9216 --context-parallel-size 2");
  CHECK(packed.framework == "slime");
  CHECK(packed.devices == 32);
  CHECK(value_in(packed, "data_sharding") == "zero1");
  CHECK(value_in(packed, "sequence") == "18432");  // a rank of two holds 9216
  CHECK(value_in(packed, "gradient_dtype") == "fp32");
  CHECK(value_in(script(text), "sequence") == "4096");
  const std::string dynamic = text + "--use-dynamic-batch-size --max-tokens-per-gpu 9216 ";
  CHECK_THROWS_AS(script(dynamic + "--context-parallel-size 9000000000000000000"), InputError);
  CHECK_THROWS_AS(script(dynamic + "--actor-num-nodes 9000000000000000000"), InputError);
}

TEST_CASE("around: MindSpeed-LLM's latent attention, dense first layers, stages and gated GELU") {
  const std::string text =
      "torchrun --nproc_per_node 8 --nnodes 8 posttrain_gpt.py --num-layers 61 --hidden-size 7168 "
      "--num-attention-heads 128 --ffn-hidden-size 18432 --seq-length 4096 --micro-batch-size 1 "
      "--vocab-size 129280 --use-mcore-models --disable-bias-linear --pipeline-model-parallel-size 4 "
      "--num-layer-list 15,15,16,15 "
      "--bf16 ";
  const LaunchedRun run = script(text +
                                 "--multi-head-latent-attention --kv-lora-rank 512 --qk-nope-head-dim 128 "
                                 "--num-experts 64 --expert-model-parallel-size 16 --moe-layer-freq 1 "
                                 "--first-k-dense-replace 3 --lora-r 8 --lora-target-modules linear_qkv");
  CHECK(run.refusals.empty());
  CHECK(value_in(run, "stage_layers") == "15,15,16,15");
  CHECK(value_in(run, "lora_targets") == "linear_q_down_proj,linear_kv_down_proj");
  REQUIRE(run.model);
  REQUIRE(run.model->layer_runs.size() == 2);
  CHECK(run.model->layer_runs.front().count == 3);
  const LaunchedRun gated = script(text + "--gelu-tanh");
  REQUIRE(gated.model);
  CHECK(gated.model->architecture.activation == Activation::geglu);
}

TEST_CASE("around: a LLaMA MLP of GPT-NeoX is as wide as its file says") {
  const std::string text =
      "num_layers: 32\nhidden_size: 4096\nnum_attention_heads: 32\nseq_length: 4096\n"
      "max_position_embeddings: 4096\npipe_parallel_size: 1\nmodel_parallel_size: 1\n"
      "train_micro_batch_size_per_gpu: 1\nintermediate_size: 14336\n";
  const LaunchedRun llama = yaml(text + "mlp_type: llama\n");
  REQUIRE(llama.model);
  CHECK(llama.model->feedforward == 14336);
  const LaunchedRun swiglu = yaml(text + "activation: swiglu\n");
  REQUIRE(swiglu.model);
  CHECK(swiglu.model->feedforward == 4864);  // a third, to a multiple of 256
}

TEST_CASE("around: a tokenizer of a file of one's own has a vocabulary that is assumed") {
  const std::string text =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads "
      "12 "
      "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --bf16 "
      "--tokenizer-type Llama2Tokenizer --tokenizer-model ";
  CHECK(says(script(text + "/data/ja60K.ver2.2.model"), "that of ja60K.ver2.2.model is not known"));
  CHECK(says(script(text + "/data/llama-2/tokenizer.model"), "the vocabulary is 32000, Llama 2's"));
  const std::string bpe =
      text.substr(0, text.find("--tokenizer-type")) + "--tokenizer-type GPT2BPETokenizer --vocab-file ";
  CHECK(says(script(bpe + "/data/nordic/vocab.json"),
             "GPT-2's BPE: that of /data/nordic/vocab.json is not known"));
  CHECK_FALSE(says(script(bpe + "/data/gpt2-vocab.json"), "is not known"));
}

TEST_CASE("around: OLMo's files are its own") {
  const LaunchedRun run = yaml(
      "model:\n  d_model: 4096\n  n_heads: 32\n  n_layers: 32\n  mlp_hidden_size: 22016\n  weight_tying: "
      "false\n"
      "  rope: true\n  include_bias: false\n  layer_norm_type: rms\n  activation_type: swiglu\n"
      "  max_sequence_length: 4096\n  embedding_size: 50304\n  attention_dropout: 0.0\n  residual_dropout: "
      "0.0\n"
      "global_train_batch_size: 1024\ndevice_train_microbatch_size: 2\nprecision: amp_bf16\n"
      "fsdp:\n  wrapping_strategy: by_block_and_size\n  precision: mixed\n"
      "activation_checkpointing: whole_layer\n");
  CHECK(run.framework == "OLMo");
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(value_in(run, "gradient_dtype") == "fp32");
  CHECK(value_in(run, "recompute") == "full");
  CHECK(value_in(run, "sequence") == "4096");
  REQUIRE(run.model);
  CHECK(run.model->feedforward == 11008);
  CHECK(run.model->vocabulary == 50304);
  CHECK_FALSE(run.model->architecture.tied_embeddings);
  CHECK(run.model->architecture.activation == Activation::swiglu);
}

TEST_CASE("around: what OLMo would refuse is an error of the file") {
  const auto refused = [](const std::string& member) {
    CHECK_THROWS_AS(yaml("model:\n  d_model: 1024\n  n_heads: 16\n  max_sequence_length: 2048\n  " + member +
                         "\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 2\n"),
                    InputError);
  };
  refused("n_layers: -4");
  refused("n_layers: 12\n  activation_type: geglu");
  refused("n_layers: 12\n  mlp_ratio: 9000000000000000000");
  refused("n_layers: 12\nactivation_checkpointing: nonsense");
}

TEST_CASE("around: litgpt's files are its own") {
  const std::string text =
      "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B\nprecision: bf16-true\n"
      "train:\n  global_batch_size: 64\n  micro_batch_size: 4\n  max_seq_length: 512\n";
  const LaunchedRun full = yaml(text + "devices: 4\n");
  CHECK(full.framework == "litgpt");
  CHECK(full.software == "litgpt-2024");
  CHECK(full.devices == 4);
  CHECK(value_in(full, "data_sharding") == "zero3");
  CHECK(value_in(full, "recompute") == "full");
  CHECK(value_in(full, "main_params_dtype") == "none");
  CHECK(value_in(full, "sequence") == "512");
  const LaunchedRun wide = yaml("precision: 32-true\n" + text.substr(0, text.find("precision")) +
                                text.substr(text.find("train:")) + "devices: 4\n");
  CHECK(value_in(wide, "main_params_dtype") == "fp32");
  CHECK_THROWS_AS(yaml(text + "devices: 9000000000000000000\nnum_nodes: 8\n"), InputError);
  const LaunchedRun all = yaml(text + "devices: auto\n");
  CHECK(value_in(all, "data_sharding") == "zero3");
  const LaunchedRun small = yaml(
      "model:\n  n_layer: 6\n  n_head: 6\n  n_embd: 384\n  block_size: 1024\n  vocab_size: 50257\n"
      "train:\n  micro_batch_size: 8\n  global_batch_size: 512\n  tie_embeddings: true\ndevices: "
      "8\nnum_nodes: 2\n");
  REQUIRE(small.model);
  CHECK(small.model->feedforward == 4 * 384);
  CHECK(small.model->architecture.tied_embeddings);
  CHECK(value_in(small, "shard_size") == "8");
  const LaunchedRun lora = yaml(text + "devices: 1\nlora_r: 16\nlora_mlp: true\nquantize: bnb.nf4-dq\n");
  CHECK(value_in(lora, "recompute") == "none");
  CHECK(value_in(lora, "lora_rank") == "16");
  CHECK(value_in(lora, "lora_targets") == "q_proj,v_proj,gate_proj,up_proj,down_proj");
  CHECK(value_in(lora, "base_dtype") == "nf4");
}

TEST_CASE("around: of preferences a pair is two sequences, and DPO of whole weights keeps a reference") {
  const std::string factory =
      "model_name_or_path: meta-llama/Llama-3.1-8B\ncutoff_len: 2048\nper_device_train_batch_size: 2\n"
      "gradient_accumulation_steps: 4\nfinetuning_type: ";
  const auto holds = [](const LaunchedRun& run) { return value_in(run, "reference_model") == "yes"; };
  const LaunchedRun full = yaml(factory + "full\nstage: dpo\n");
  CHECK(value_in(full, "micro_batch") == "4");
  CHECK(holds(full));
  CHECK(holds(yaml(factory + "lora\nstage: dpo\n")));
  CHECK_FALSE(holds(yaml(factory + "full\nstage: dpo\npref_loss: simpo\n")));
  const LaunchedRun sft = yaml(factory + "full\nstage: sft\n");
  CHECK(value_in(sft, "micro_batch") == "2");
  CHECK_FALSE(holds(sft));
  const std::string openrlhf =
      "deepspeed --num_gpus 8 --module openrlhf.cli.train_dpo --pretrain Qwen/Qwen2.5-7B --bf16 "
      "--micro_train_batch_size 2 --train_batch_size 128 --zero_stage 3";
  CHECK(value_in(script(openrlhf), "micro_batch") == "4");
  CHECK(value_in(script(openrlhf), "global_batch") == "256");
  CHECK(holds(script(openrlhf)));
  // TRL, by its command, its programs and its settings.
  const std::string trl = "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --bf16";
  CHECK(holds(script("trl dpo " + trl)));
  CHECK(value_in(script("trl dpo " + trl), "micro_batch") == "4");
  CHECK_FALSE(holds(script("trl sft " + trl)));
  CHECK_FALSE(holds(script("torchrun --nproc_per_node 8 my_endpoint_train.py " + trl)));
  CHECK(value_in(script("torchrun --nproc_per_node 8 run_orpo.py " + trl), "micro_batch") == "4");
  CHECK_FALSE(holds(script("torchrun --nproc_per_node 8 run_orpo.py " + trl)));
  const std::string file = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nbeta: 0.1\n";
  CHECK(holds(yaml(file + "max_prompt_length: 512\n")));
  const LaunchedRun grpo = yaml(file + "loss_type: grpo\nnum_generations: 8\n");
  CHECK(value_in(grpo, "micro_batch") == "2");
  CHECK(holds(grpo));  // beta is 0.1, so GRPO keeps a reference model
  CHECK_FALSE(holds(yaml("model_name_or_path: Qwen/Qwen2.5-7B\nbeta: 0.0\nnum_generations: 8\n")));
  CHECK_FALSE(holds(yaml(file + "loss_type: simpo\ncpo_alpha: 0.5\n")));
  const LaunchedRun kto = yaml(file + "loss_type: kto\ndesirable_weight: 1.0\n");
  CHECK(value_in(kto, "micro_batch") == "2");
  CHECK(holds(kto));
}

TEST_CASE("around: verl steps weights that it loads in BF16, and checkpoints layers of the actor") {
  const LaunchedRun sft = script(
      "torchrun --standalone --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
      "model.partial_pretrain=Qwen/Qwen3-4B model.fsdp_config.model_dtype=bf16");
  CHECK(value_in(sft, "main_params_dtype") == "none");
  const LaunchedRun actor = script(
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct "
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 trainer.n_gpus_per_node=8 trainer.nnodes=2");
  CHECK(value_in(actor, "recompute") == "full");
  CHECK(value_in(actor, "main_params_dtype").empty());
}

TEST_CASE("around: verl's packed microbatches are the nearest that divide a rank's batch") {
  const auto actor = [](std::int64_t tokens) {
    return script(fmt::format(
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct "
        "data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=64 "
        "actor_rollout_ref.rollout.n=8 data.max_prompt_length=2048 data.max_response_length=4096 "
        "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu={} "
        "actor_rollout_ref.model.enable_activation_offload=True trainer.n_gpus_per_node=8 trainer.nnodes=2",
        tokens));
  };
  CHECK(value_in(actor(40960), "micro_batch") == "8");  // 6.67 sequences
  CHECK(value_in(actor(32768), "micro_batch") == "4");  // 5.33
  CHECK(value_in(actor(1024), "micro_batch") == "1");
  CHECK(value_in(actor(4000000), "micro_batch") == "32");  // all of the rank's
  CHECK(value_in(actor(40960), "offload_modules") == "layer_input");
}

TEST_CASE("around: NeMo's ZeRO optimizer among overrides, and a recipe before the name of its file") {
  const LaunchedRun run = script(
      "python megatron_gpt_pretraining.py trainer.num_nodes=1 trainer.devices=8 trainer.precision=bf16 "
      "model.num_layers=12 model.hidden_size=768 model.num_attention_heads=12 model.micro_batch_size=4 "
      "model.global_batch_size=32 model.encoder_seq_length=2048 model.optim.name=distributed_fused_adam");
  CHECK(run.framework == "NeMo");
  CHECK(value_in(run, "data_sharding") == "zero1");
  CHECK_FALSE(says(run, "trainer.precision"));
  const LaunchedRun recipe = read_python_config(
      "def configure_recipe():\n    recipe = llm.llama3_8b.pretrain_recipe(num_nodes=1)\n    return recipe\n",
      "nemotron3_4b_pretraining.py", "configure_recipe", {});
  REQUIRE(recipe.model);
  CHECK(recipe.model->name == "llama-3-8b");
}

TEST_CASE("around: NeMo's launcher has NeMo's configuration under training") {
  const std::string words =
      "training.trainer.num_nodes=16 training.model.global_batch_size=16 "
      "training.model.micro_batch_size=1 training.model.tensor_model_parallel_size=8 "
      "training.model.pipeline_model_parallel_size=8 "
      "training.model.virtual_pipeline_model_parallel_size=11 training.model.num_layers=88 "
      "++training.model.optim.grad_sync_dtype=bf16 ++training.model.sequence_parallel=true "
      "training.run.time_limit=0:59:00 ++training.model.nsys_profile.enabled=true";
  const LaunchedRun run =
      script("python3 ../launcher_scripts/main.py training=nemotron/nemotron_340b_short " + words);
  CHECK(run.framework == "NeMo");
  CHECK(run.devices == 128);
  CHECK(run.model_name == "nemotron-4-340b");
  REQUIRE(run.model);
  CHECK(run.model->layers == 88);
  CHECK(value_in(run, "tensor_parallel") == "8");
  CHECK(value_in(run, "pipeline_parallel") == "8");
  CHECK(value_in(run, "virtual_pipeline") == "11");
  CHECK(value_in(run, "global_batch") == "16");
  CHECK(value_in(run, "gradient_dtype") == "bf16");
  CHECK(value_in(run, "sequence_parallel") == "yes");
  CHECK(value_in(run, "data_sharding") == "zero1");
  CHECK(says(run, "training=nemotron/nemotron_340b_short is not at hand"));
  CHECK(says(run, "nodes of 8 GPUs, as in the launcher's own configurations"));
  CHECK_FALSE(says(run, "not known"));
  CHECK_FALSE(script("python3 main.py training=gpt3/own " + words).model);
  const LaunchedRun file = yaml(
      "cluster: {partition: a}\ntraining:\n  run: {name: x}\n  trainer: {num_nodes: 1, devices: 8}\n"
      "  model:\n    micro_batch_size: 4\n    global_batch_size: 32\n    encoder_seq_length: 2048\n"
      "    num_layers: 12\n    hidden_size: 768\n    num_attention_heads: 12\n"
      "    tensor_model_parallel_size: 2\n    optim: {name: distributed_fused_adam}\n");
  CHECK(file.framework == "NeMo");
  CHECK(value_in(file, "tensor_parallel") == "2");
  REQUIRE(file.model);
  CHECK(file.model->hidden == 768);
}

TEST_CASE("around: local layers of Megatron-Core, and nanotron's GPT-3") {
  const std::string text =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads "
      "12 "
      "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --bf16 --vocab-size 32000 "
      "--transformer-impl local ";
  CHECK(script(text + "--use-mcore-models").software == "megatron-core-2025");
  CHECK(script(text).software == "megatron-2022");
  const LaunchedRun gpt3 = yaml(
      "model:\n  model_config:\n    activation_function: gelu\n    hidden_size: 1024\n    intermediate_size: "
      "4096\n"
      "    num_attention_heads: 16\n    num_hidden_layers: 24\n    vocab_size: 256008\n"
      "    sinusoidal_position_embedding: true\nparallelism:\n  dp: 4\n  tp: 1\n  pp: 1\n"
      "tokens:\n  micro_batch_size: 4\n  sequence_length: 2048\n  batch_accumulation_per_replica: 1\n");
  REQUIRE(gpt3.model);
  CHECK(gpt3.model->architecture.activation == Activation::gelu);
  CHECK(gpt3.model->architecture.positions == Positions::none);
}

TEST_CASE("around: torchtitan's components of torch.compile") {
  const std::string text =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n[parallelism]\n"
      "data_parallel_shard_degree = 8\n[compile]\nenable = true\ncomponents = ";
  const auto launches = [&](const std::string& parts) {
    return value_in(read_tree_file(text + parts + "\n", "run.toml", {}), "launches");
  };
  CHECK(launches("[\"model\", \"loss\"]") == "compiled");
  CHECK(launches("[\"loss\"]").empty());
}

TEST_CASE("around: torchtune's builders of Gemma 2, whose names are Gemma's in old files") {
  const std::string text =
      "batch_size: 1\noptimizer: {_component_: torch.optim.AdamW}\n"
      "tokenizer: {max_seq_len: 2048}\nmodel: {_component_: torchtune.models.";
  const LaunchedRun second = yaml(text + "gemma2.gemma_27b}\n");
  REQUIRE(second.model);
  CHECK(second.model->name == "gemma-2-27b");
  const LaunchedRun first = yaml(text + "gemma.gemma_2b}\n");
  REQUIRE(first.model);
  CHECK(first.model->name != "gemma-2-2b");
}

TEST_CASE("around: accelerate starts DeepSpeed at stage 2 where its file names no stage") {
  const LaunchFolder folder;
  folder.with("ds.yaml", "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n");
  const LaunchedRun run = read_launched_run(folder.with(
      "run.sh",
      "accelerate launch --config_file ds.yaml dpo.py --model_name_or_path meta-llama/Llama-3.1-8B "
      "--per_device_train_batch_size 1 --max_length 1024\n"));
  CHECK(run.software == "deepspeed-2025");
  CHECK(value_in(run, "data_sharding") == "zero2");
}

TEST_CASE("around: LLaMA-Factory's program trains by one command, also as a module") {
  const LaunchFolder folder;
  folder.with("sft.yaml",
              "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nfinetuning_type: full\n"
              "template: llama3\ncutoff_len: 2048\nper_device_train_batch_size: 1\nbf16: true\n");
  const LaunchedRun run =
      read_launched_run(folder.with("run.sh",
                                    "llamafactory-cli chat --model_name_or_path Qwen/Qwen3-8B --template "
                                    "qwen\nexport NPROC_PER_NODE=4\npython -m llamafactory.cli train "
                                    "sft.yaml\nllamafactory-cli export merge.yaml\n"));
  CHECK(run.framework == "LLaMA-Factory");
  CHECK(value_in(run, "micro_batch") == "1");
  CHECK(run.devices == 4);
}

TEST_CASE("around: DeepSpeed's own flag, FP32 and the batch that the Trainer compares") {
  const LaunchFolder folder;
  folder.with("ds.json", R"({"train_batch_size": 64, "zero_optimization": {"stage": 1}})");
  const std::string start =
      "deepspeed --num_gpus 8 train.py --model_name_or_path meta-llama/Llama-3.2-1B "
      "--per_device_train_batch_size 8 --gradient_accumulation_steps 2 --max_length 1024 ";
  const LaunchedRun run = read_launched_run(folder.with("run.sh", start + "--deepspeed_config ds.json\n"));
  CHECK(value_in(run, "data_sharding") == "zero1");
  const LaunchedRun trainer = read_launched_run(folder.with("run.sh", start + "--deepspeed ds.json\n"));
  CHECK(says(trainer, "FP32 under DeepSpeed is not modelled"));
  const auto refusal = batch_refusal(trainer, 8);
  REQUIRE(refusal);
  CHECK(refusal->rule == "must be microbatch x accumulation x DP (64 is not 8 x 2 x 8 = 128)");
  const LaunchedRun half =
      read_launched_run(folder.with("run.sh", start + "--bf16 True --deepspeed ds.json\n"));
  CHECK_FALSE(says(half, "FP32 under DeepSpeed"));
}

}  // namespace headroom::tests

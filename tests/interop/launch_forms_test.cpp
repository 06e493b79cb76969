// Forms in which public scripts start runs: modules, recipes, Hydra's flags, flags in groups, settings of forks.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests::launch_forms {
namespace {

LaunchedRun of_words(const std::string& text) { return read_launch_script(text, "run.sh", {}); }

std::string need_in(const LaunchedRun& run, std::string_view words) {
  for (const LaunchRemark& remark : run.remarks) {
    if (remark.kind == LaunchRemarkKind::unresolved && remark.text.find(words) != std::string::npos)
      return remark.text;
  }
  return "";
}

const std::string actor =
    " actor_rollout_ref.model.path=Qwen/Qwen2.5-7B data.train_batch_size=64 data.max_prompt_length=1024 "
    "data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 trainer.n_gpus_per_node=8 trainer.nnodes=1";
const std::string megatron =
    " pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
    "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 16 --bf16 --vocab-size 32000 ";

}  // namespace

TEST_CASE("launch forms: Hydra's flags take one value, and overrides follow") {
  for (const std::string flags : {" --config-name ppo_trainer", " --config-name=ppo_trainer",
                                  " --config-path config --config-name 'ppo_trainer.yaml'"}) {
    const LaunchedRun run = of_words("python3 -m verl.trainer.main_ppo" + flags + actor);
    CHECK(value_in(run, "micro_batch") == "2");
    CHECK(value_in(run, "global_batch") == "64");
    CHECK(value_in(run, "sequence") == "2048");
  }
}

TEST_CASE("launch forms: verl's recipes and forks are known by their settings") {
  for (const std::string program : {"-m recipe.dapo.main_dapo", "verl/trainer/main_ppo.py",
                                    "-m mmsearch_r1.trainer.multimodal.main_ppo"}) {
    const LaunchedRun run = of_words("python3 " + program + actor);
    CHECK(run.framework == "verl");
    CHECK(value_in(run, "global_batch") == "64");
  }
}

TEST_CASE("launch forms: ms-swift by its module and its file") {
  for (const std::string start :
       {"deepspeed --num_gpus 2 --module swift.cli.sft", "torchrun --nproc_per_node 2 swift/cli/sft.py",
        "torchrun --nproc_per_node 2 -m swift.cli.sft"}) {
    const LaunchedRun run = of_words(start + " --model Qwen/Qwen3-8B --per_device_train_batch_size 1");
    REQUIRE(run.model);
    CHECK(value_in(run, "lora_rank") == "8");
    CHECK(value_in(run, "recompute") == "full");
  }
}

TEST_CASE("launch forms: ms-swift's sequence parallelism takes ranks of the batch") {
  const LaunchedRun run = of_words(
      "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --tuner_type full --deepspeed zero3 "
      "--sequence_parallel_size 2 --per_device_train_batch_size 1 --gradient_accumulation_steps 16");
  CHECK(value_in(run, "context_parallel") == "2");
  CHECK(value_in(run, "data_parallel") == "4");
  CHECK(value_in(run, "global_batch") == "64");
}

TEST_CASE("launch forms: OpenRLHF's flags in groups") {
  const LaunchedRun run = of_words(
      "DEEPSPEED_BIN=\"${DEEPSPEED_BIN:-$(command -v deepspeed)}\"\n"
      "\"$DEEPSPEED_BIN\" --num_gpus 8 --module openrlhf.cli.train_sft --model.model_name_or_path "
      "Qwen/Qwen2.5-7B "
      "--train.batch_size 64 --train.micro_batch_size 1 --data.max_len 16384 --ds.zero_stage 3 "
      "--ds.param_dtype bf16 --ds.adam_offload --model.gradient_checkpointing_enable");
  CHECK(run.framework == "OpenRLHF");
  CHECK(value_in(run, "micro_batch") == "1");
  CHECK(value_in(run, "global_batch") == "64");
  CHECK(value_in(run, "sequence") == "16384");
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(value_in(run, "optimizer_offload_fraction") == "1");
  CHECK(value_in(run, "recompute") == "full");
  const LaunchedRun adapters = of_words(
      "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B --zero_stage 2 "
      "--lora_rank 8 --target_modules q_proj v_proj");
  CHECK(value_in(adapters, "lora_targets").find("q") != std::string::npos);
  CHECK(value_in(adapters, "lora_targets").find("linear_fc1") == std::string::npos);
  const LaunchedRun grouped = of_words(
      "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --model.model_name_or_path Qwen/Qwen2.5-7B "
      "--ds.zero_stage 2 --ds.lora.rank 8 --ds.lora.target_modules q_proj");
  CHECK(value_in(grouped, "lora_rank") == "8");
}

TEST_CASE("launch forms: TRL's defaults hold where its settings are") {
  const std::string trainer =
      "torchrun --nproc_per_node 8 sft.py --model_name_or_path Qwen/Qwen2.5-7B "
      "--per_device_train_batch_size 2 --bf16 True";
  const LaunchedRun trl = of_words(trainer + " --dataset_text_field text");
  CHECK(value_in(trl, "sequence") == "1024");
  CHECK(value_in(trl, "recompute") == "full");
  CHECK(value_in(of_words(trainer), "sequence").empty());
  CHECK(value_in(of_words(trainer), "recompute").empty());
  for (const std::string name : {"max_seq_length", "max_seq_len", "seq_length", "model_max_length"}) {
    const LaunchedRun run = of_words(trainer + " --dataset_text_field text --" + name + " 4096");
    CHECK(value_in(run, "sequence") == "4096");
  }
  const LaunchedRun swift = of_words("NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --packing_strategy x");
  CHECK(value_in(swift, "sequence").empty());
}

TEST_CASE("launch forms: eager attention keeps its scores") {
  const std::string trainer =
      "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 4096 "
      "--per_device_train_batch_size 1 --attn_implementation ";
  const auto kernel = [&](const std::string& name) {
    const LaunchedRun run = of_words(trainer + name);
    return run.model->architecture.kernels.attention;
  };
  CHECK(kernel("eager") == AttentionKernel::unfused);
  CHECK(kernel("flash_attention_2") == kernel("sdpa"));
  CHECK(kernel("sdpa") != AttentionKernel::unfused);
}

TEST_CASE("launch forms: pure_bf16 of LLaMA-Factory steps weights and moments of 16 bits") {
  const LaunchedRun run = of_words(
      "llamafactory-cli train --model_name_or_path Qwen/Qwen2.5-7B --finetuning_type full --pure_bf16 true");
  CHECK(value_in(run, "main_params_dtype") == "none");
  CHECK(value_in(run, "exp_avg_dtype") == "bf16");
  CHECK(value_in(run, "exp_avg_sq_dtype") == "bf16");
}

TEST_CASE("launch forms: what forks of Megatron-LM add") {
  const std::string experts =
      " --swiglu --disable-bias-linear --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm ";
  const std::string start = "torchrun --nproc_per_node 8" + megatron + experts;
  CHECK(value_in(of_words(start + "--moe-layer-recompute"), "recompute_ops") == "core_attn,moe");
  CHECK(value_in(of_words(start + "--moe-layer-recompute --recompute-granularity selective "
                                  "--recompute-modules moe layernorm"),
                 "recompute_ops") == "moe,layernorm");
  CHECK_THROWS_AS(of_words(start + "--moe-layer-recompute --recompute-granularity full --recompute-method "
                                   "uniform --recompute-num-layers 1"),
                  InputError);
  const LaunchedRun narrow = of_words(start + "--moe-intermediate-size 256 --moe-layer-freq -1");
  REQUIRE(narrow.model);
  CHECK(narrow.model->architecture.experts->feedforward == 256);
  CHECK(value_in(of_words("torchrun --nproc_per_node 8" + megatron +
                          "--checkpoint-activations --distribute-checkpointed-activations"),
                 "distribute_saved_activations")
            .empty());
}

TEST_CASE("launch forms: adapters of MindSpeed-LLM") {
  const LaunchedRun run = of_words("torchrun --nproc_per_node 8" + megatron +
                                   "--lora-r 8 --lora-alpha 32 --lora-target-modules query_key_value dense");
  CHECK(run.software == "nemo-2025");
  CHECK(value_in(run, "lora_rank") == "8");
  CHECK(value_in(run, "lora_targets") == "linear_qkv,linear_proj");
}

TEST_CASE("launch forms: sizes of the job that only a run knows are needed") {
  CHECK(!need_in(of_words("mpirun -np $WORLD -npernode 4 python" + megatron), "$WORLD").empty());
  CHECK(!need_in(of_words("torchrun --nnodes=$N --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
                          "data.train_batch_size=16 data.micro_batch_size_per_gpu=1 "
                          "model.partial_pretrain=Qwen/Qwen2.5-7B"),
                 "$N")
             .empty());
}

TEST_CASE("launch forms: a DeepSpeed file in a folder that only a run knows is taken by its name") {
  const LaunchedRun run = of_words(
      "DIR=/runs/$(date +%s)\ntorchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B "
      "--max_length 2048 --per_device_train_batch_size 1 --deepspeed $DIR/zero3_offload.json");
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(value_in(run, "offload_parameters") == "yes");
}

TEST_CASE("launch forms: conditions of grep are followed, and those of other commands are told") {
  const auto tensor = [&](const std::string& condition) {
    return of_words("ARGS=\"--a --use-tp x\"\nTP=1\nif " + condition +
                    "; then TP=2; fi\ntorchrun --nproc_per_node 8" + megatron +
                    "--tensor-model-parallel-size $TP");
  };
  CHECK(value_in(tensor("echo \"$ARGS\" | grep -q -- '--use-tp'"), "tensor_parallel") == "2");
  CHECK(value_in(tensor("echo \"$ARGS\" | grep -q -- '--no-tp'"), "tensor_parallel") == "1");
  CHECK(value_in(tensor("! echo \"$ARGS\" | grep -q tp"), "tensor_parallel") == "1");
  CHECK(value_in(tensor("grep -qiw USE <<< \"$ARGS\""), "tensor_parallel") == "2");
  CHECK(value_in(tensor("grep -qF 'use.tp' <<< \"$ARGS\""), "tensor_parallel") == "1");
  CHECK(value_in(tensor("grep -qE 'no|(use)-tp$' <<< 'use-tp'"), "tensor_parallel") == "2");
  CHECK(value_in(tensor("printf '%s\\n' a b tp | grep -qx tp"), "tensor_parallel") == "2");
  CHECK(value_in(tensor("grep -q -e none -e tp <<< \"$ARGS\""), "tensor_parallel") == "2");
  CHECK(value_in(tensor("echo \"$((TP++))\" | grep -q 5"), "tensor_parallel") == "1");
  const LaunchedRun open = tensor("lscpu | grep -q AMD");
  CHECK(value_in(open, "tensor_parallel") == "2");
  CHECK(need_in(open, "lscpu") ==
        "a condition needs $(lscpu | grep -q AMD), which only a run knows; it is taken as true");
  CHECK(need_in(of_words("TP=1\nlscpu | grep -q AMD && TP=2\ntorchrun --nproc_per_node 8" + megatron +
                         "--tensor-model-parallel-size $TP"),
                "lscpu") != "");
  CHECK(need_in(tensor("[[ -f x ]]"), "condition").empty());
}

TEST_CASE("launch forms: what a loop of unknown length counts is given by its name") {
  const std::string script =
      "N=0\nfor h in $(hosts); do N=$((N+1)); done\ntorchrun --nnodes $N --nproc_per_node 8" + megatron;
  CHECK(
      need_in(of_words(script), "number of GPUs") ==
      "the number of GPUs: needs $N, which only a run knows: give it with --env N=VALUE (or give --devices)");
  CHECK(read_launch_script(script, "run.sh", {.environment = {{"N", "4"}}}).devices == 32);
}

TEST_CASE("launch forms: a member whose last value only a run knows is needed") {
  const LaunchedRun run =
      of_words("torchrun --nproc_per_node 8" + megatron + "--hidden-size $(python size.py)");
  CHECK_FALSE(run.model.has_value());
  CHECK(!need_in(run, "size.py").empty());
}

TEST_CASE("launch forms: a size in a name says another model") {
  const auto primus = [](const std::string& model) {
    return read_tree_file("modules:\n  pre_trainer:\n    framework: megatron\n    model: " + model +
                              ".yaml\n    overrides:\n      micro_batch_size: 1\n",
                          "primus.yaml", {});
  };
  CHECK(primus("deepseek_v3").model.has_value());
  CHECK_FALSE(primus("deepseek_v3_17B").model.has_value());
  for (const std::string name :
       {"Qwen/Qwen2.5-7B-Instruct-1M", "x/Qwen3-8B-base-100B-tokens", "x/DeepSeek-V3-671B-bf16"}) {
    CAPTURE(name);
    CHECK(of_words("torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 1 --max_length 2048 "
                   "--model_name_or_path " +
                   name)
              .model.has_value());
  }
}

TEST_CASE("launch forms: what accelerate's file says stands beside the configuration that a script names") {
  const LaunchFolder folder;
  folder.with("sft.yaml", "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 2\n");
  const auto run = [&](const std::string& line) { return read_launched_run(folder.with("run.sh", line)); };
  const LaunchedRun shipped = run("trl sft --config sft.yaml --num_processes 8 --accelerate_config zero2\n");
  CHECK(value_in(shipped, "data_sharding") == "zero2");
  CHECK(need_in(run("trl sft --config sft.yaml --num_processes 8 --accelerate_config fancy\n"),
                "no such file") != "");
  CHECK(need_in(run("accelerate launch --config_file fancy.yaml sft.py --config sft.yaml\n"),
                "--config_file fancy.yaml") != "");
}

}  // namespace headroom::tests::launch_forms

// What launch files need that only a run or its user knows, and values that their programs refuse.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests::launch_needs {
namespace {

const std::string megatron =
    " pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
    "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --bf16 --vocab-size 32000\n";
const std::string trainer =
    " train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --max_length 2048 --bf16 "
    "True";

LaunchedRun of_script(const std::string& text, const LaunchOptions& options = {}) {
  return read_launch_script(text, "run.sh", options);
}

// What a run needs of a field.
std::string need_of(const LaunchedRun& run, std::string_view field) {
  const auto found = std::find_if(run.remarks.begin(), run.remarks.end(), [&](const LaunchRemark& remark) {
    return remark.kind == LaunchRemarkKind::unresolved && remark.field == field;
  });
  return found == run.remarks.end() ? "" : found->text;
}

template <class Read>
std::string problem_of(const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.problems().front().where + ": " + error.problems().front().rule;
  }
  return "";
}
std::string problem_of_script(const std::string& text) {
  return problem_of([&] { of_script(text); });
}

}  // namespace

TEST_CASE("launch needs: nodes that a list counts") {
  const std::string script =
      "HOSTS=($(hosts))\nNNODES=${#HOSTS[@]}\ntorchrun --nnodes $NNODES --nproc_per_node 8" + megatron;
  CHECK(need_of(of_script(script), "data_parallel") ==
        "the number of GPUs: needs ${#HOSTS[@]} (NNODES), which only a run knows: give it with --env "
        "NNODES=VALUE (or give --devices)");
  CHECK(of_script(script, {.environment = {{"NNODES", "4"}}}).devices == 32);
}

TEST_CASE("launch needs: processes of a node that nobody set") {
  const std::string need = "the number of GPUs: needs $N: give it with --env NAME=VALUE (or give --devices)";
  for (const std::string start :
       {"torchrun --nnodes 1 --nproc_per_node $N", "deepspeed --num_nodes 1 --num_gpus $N",
        "accelerate launch --num_machines 1 --num_processes $N"}) {
    CAPTURE(start);
    CHECK(need_of(of_script(start + megatron), "data_parallel") == need);
    CHECK(need_of(of_script(start + trainer), "data_parallel") == need);
  }
  CHECK(need_of(of_script("torchrun --nnodes $M --nproc_per_node $N" + megatron), "data_parallel") ==
        "the number of GPUs: needs $M, $N: give it with --env NAME=VALUE (or give --devices)");
  // All of a node, by what counts them.
  for (const std::string count : {"$(nvidia-smi -L | wc -l)", "$SLURM_GPUS_ON_NODE",
                                  "$(python -c 'import torch; print(torch.cuda.device_count())')"}) {
    const LaunchedRun run = of_script("torchrun --nnodes 2 --nproc_per_node " + count + megatron);
    CHECK(need_of(run, "data_parallel").empty());
    CHECK(run.nodes == 2);
  }
  CHECK(need_of(of_script("NPROC_PER_NODE= swift sft --model Qwen/Qwen3-8B"), "data_parallel") ==
        "the number of GPUs: NPROC_PER_NODE has no value: give --devices");
}

TEST_CASE("launch needs: a condition on a variable that nobody set, before a Trainer") {
  const std::string script =
      "if [ \"$SIZE\" = small ]; then LEN=2048; fi\n"
      "accelerate launch --num_processes 8 train.py --model_name_or_path Qwen/Qwen3-8B "
      "--per_device_train_batch_size 1 --max_length $LEN";
  CHECK(need_of(of_script(script), "sequence") == "--max_length: needs $SIZE: give it with --env NAME=VALUE");
  CHECK(value_in(of_script(script, {.environment = {{"SIZE", "small"}}}), "sequence") == "2048");
  CHECK(problem_of_script("if [ \"$MODE\" = go ]; then axolotl train a.yaml; fi\nls")
            .ends_with("a condition needs $MODE: give it with --env NAME=VALUE"));
}

TEST_CASE("launch needs: how swift trains") {
  const std::string start = "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --train_type ";
  CHECK(need_of(of_script(start + "$T"), "lora_rank") ==
        "--train_type $T: needs $T: give it with --env NAME=VALUE");
  CHECK(problem_of_script(start + "foo") ==
        "run.sh:1: --train_type: must be full, lora or lora_llm, not 'foo'");
  CHECK(value_in(of_script(start + "lora"), "lora_rank") == "8");
  const std::string sft = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --train_type ";
  CHECK(problem_of_script(sft + "foo").find("must be lora, full, longlora") != std::string::npos);
  CHECK(says(of_script(sft + "adalora"), "read as LoRA"));
  CHECK(value_in(of_script(sft + "lora"), "lora_targets") == "all-linear");
}

TEST_CASE("launch needs: ms-swift by its program of Python, and in its older words") {
  const LaunchedRun program = of_script(
      "accelerate launch --num_processes 2 swift/cli/sft.py --model Qwen/Qwen2.5-72B-Instruct --train_type "
      "lora "
      "--quant_bits 4 --per_device_train_batch_size 1 --max_length 2048");
  CHECK(program.model_name == "Qwen/Qwen2.5-72B-Instruct");
  CHECK(value_in(program, "lora_rank") == "8");
  CHECK(value_in(program, "base_dtype") == "nf4");
  const LaunchedRun older = of_script(
      "NPROC_PER_NODE=3 swift sft --model_type qwen2-1_5b-instruct --sft_type full --batch_size 4 "
      "--gradient_accumulation_steps 8 --max_length 8192 --deepspeed default-zero3");
  CHECK(older.model_name == "qwen2-1.5b");
  CHECK(value_in(older, "data_sharding") == "zero3");
  CHECK(value_in(older, "micro_batch") == "4");
  CHECK(value_in(older, "lora_rank").empty());
}

TEST_CASE("launch needs: LLaMA-Factory's settings as flags") {
  const LaunchedRun run = of_script(
      "NPROC_PER_NODE=4 llamafactory-cli train --stage sft --model_name_or_path Qwen/Qwen3-8B "
      "--finetuning_type lora --lora_rank 16 --lora_target all --cutoff_len 4096 "
      "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --bf16 true");
  CHECK(run.framework == "LLaMA-Factory");
  CHECK(run.devices == 4);
  CHECK(value_in(run, "sequence") == "4096");
  CHECK(value_in(run, "lora_rank") == "16");
  CHECK(value_in(run, "recompute") == "full");
  CHECK(value_in(run, "global_batch") == "64");
  const LaunchedRun old = of_script(
      "deepspeed --num_gpus 8 src/train_bash.py --stage sft --model_name_or_path Qwen/Qwen3-8B --do_train "
      "--finetuning_type full --per_device_train_batch_size 4 --fp16");
  CHECK(old.framework == "LLaMA-Factory");
  CHECK(value_in(old, "sequence") == "2048");
  CHECK(value_in(old, "lora_rank").empty());
}

TEST_CASE("launch needs: accumulation is above 0") {
  CHECK(problem_of_script("torchrun --nproc_per_node 8" + trainer + " --gradient_accumulation_steps 0") ==
        "run.sh:1: --gradient_accumulation_steps: must be above 0, not 0");
  const auto problem = [](const std::string& text, const std::string& file) {
    return problem_of([&] { read_tree_file(text, file, {}); });
  };
  CHECK(problem("base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\ngradient_accumulation_steps: 0\n",
                "a.yaml") == "a.yaml:3: gradient_accumulation_steps: must be above 0, not 0");
  CHECK(problem(R"({"train_micro_batch_size_per_gpu": 0, "zero_optimization": {"stage": 2}})", "ds.json") ==
        "ds.json:1: train_micro_batch_size_per_gpu: must be above 0, not 0");
}

TEST_CASE("launch needs: batches that a file states agree on the GPUs that are known by then") {
  const auto neox = [](const std::string& batches) {
    return read_tree_file(
        "pipe_parallel_size: 2\nmodel_parallel_size: 2\nnum_layers: 12\nhidden_size: 1024\n"
        "num_attention_heads: 16\nseq_length: 2048\nmax_position_embeddings: 2048\n" +
            batches,
        "neox.yml", {});
  };
  const auto rule = [](const LaunchedRun& run, std::int64_t ranks) {
    const auto refusal = batch_refusal(run, ranks);
    return refusal ? refusal->rule + " [" + refusal->source + "]" : "";
  };
  const LaunchedRun agreed = neox("train_batch_size: 64\ntrain_micro_batch_size_per_gpu: 4\ngas: 2\n");
  CHECK(agreed.devices == 32);
  CHECK(rule(agreed, 8).empty());
  CHECK(rule(agreed, 4) ==
        "must be microbatch x accumulation x DP (64 is not 4 x 2 x 4 = 32) [GPT-NeoX, "
        "megatron/neox_arguments/arguments.py, check_batch_parameters]");
  // Accumulation is 1 where it is not written.
  CHECK(rule(neox("train_batch_size: 64\ntrain_micro_batch_size_per_gpu: 4\nnum_gpus: 8\n"), 2)
            .find("4 x 1 x 2") != std::string::npos);
  CHECK(value_in(neox("train_batch_size: 64\nnum_gpus: 8\n"), "micro_batch") == "32");
  const LaunchedRun none = neox("gas: 2\n");
  REQUIRE(none.refusals.size() == 1);
  CHECK(none.refusals.front().rule == "needs train_batch_size or train_micro_batch_size_per_gpu");
  const LaunchedRun bare = read_tree_file(R"({"zero_optimization": {"stage": 3}})", "ds.json", {});
  REQUIRE(bare.refusals.size() == 1);
  CHECK(bare.refusals.front().source == "DeepSpeed, deepspeed/runtime/config.py, _batch_assertion");
  const LaunchedRun automatic = read_tree_file(
      R"({"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto"})", "ds.json", {});
  CHECK(automatic.refusals.empty());
}

TEST_CASE("launch needs: variables with defaults as a shell has them, and in lower case") {
  const auto read = [](const std::string& length, const LaunchOptions& options = {}) {
    return read_tree_file("base_model: Qwen/Qwen3-8B\nmicro_batch_size: ${X:-2}\nsequence_len: " + length,
                          "a.yaml", options);
  };
  CHECK(value_in(read("1024"), "micro_batch") == "2");
  CHECK(value_in(read("${len:-4096}"), "sequence") == "4096");
  CHECK(value_in(read("${len}", {.environment = {{"len", "512"}}}), "sequence") == "512");
  CHECK(need_of(read("${len}"), "sequence") ==
        "sequence_len: ${len}: needs $len: give it with --env NAME=VALUE");
}

TEST_CASE("launch needs: DeepSpeed without a file or a stage") {
  CHECK(problem_of_script("deepspeed --num_gpus 8" + trainer +
                          " --deepspeed --gradient_accumulation_steps 2") ==
        "run.sh:1: --deepspeed: needs a value (is a variable empty or unset?)");
  const LaunchedRun run = read_tree_file(
      R"({"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 0}})", "ds.json", {});
  CHECK(run.software == "hf-trainer");
  CHECK(value_in(run, "data_sharding") == "none");
  CHECK(says(run, "ZeRO stage 0 is priced as plain data parallelism"));
}

TEST_CASE("launch needs: trl hands processes and a configuration to accelerate") {
  const std::string sft =
      "trl sft --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --max_length 1024 "
      "--bf16 ";
  const LaunchedRun few = of_script(sft + "--num_processes 4 --use_peft");
  CHECK(few.devices == 4);
  CHECK(value_in(few, "lora_rank") == "16");
  CHECK(value_in(few, "lora_targets") == "q_proj,v_proj");  // PEFT's own
  CHECK(value_in(of_script(sft + "--use_peft --lora_target_modules all-linear"), "lora_targets") ==
        "all-linear");
  const LaunchedRun third = of_script(sft + "--accelerate_config zero3");
  CHECK(third.devices == 8);
  CHECK(value_in(third, "data_sharding") == "zero3");
  CHECK(third.software == "deepspeed-2025");
  CHECK(value_in(of_script(sft + "--accelerate_config=fsdp2 --num-processes 2"), "data_sharding") == "zero3");
  CHECK(says(of_script(sft + "--accelerate_config zero9"), "no such file"));
}

TEST_CASE("launch needs: a configuration of accelerate that is not at hand is told, and read by its name") {
  const auto started = [](const std::string& name) {
    return of_script("accelerate launch --config_file configs/" + name + " --num_processes 4" + trainer);
  };
  const LaunchedRun third = started("deepspeed_zero3.yaml");
  CHECK(value_in(third, "data_sharding") == "zero3");
  CHECK(says(third, "is taken for ZeRO stage 3 by its name"));
  CHECK(says(third, "no such file (put it where run.sh expects it"));
  CHECK(value_in(started("zero3/ddp.yaml"), "data_sharding") == "none");  // a folder is no name of it
  CHECK(value_in(started("fsdp.yaml"), "data_sharding") == "zero3");
  CHECK(value_in(started("multi_gpu.yaml"), "data_sharding") == "none");
}

TEST_CASE("launch needs: a batch without a microbatch says it, or the GPUs are needed") {
  CHECK(says(read_tree_file(R"({"train_batch_size": 128, "gradient_accumulation_steps": 4})", "ds.json", {}),
             "is train_batch_size / (accumulation x DP), and the file does not say the GPUs"));
  const LaunchedRun neox = read_tree_file(
      "num_layers: 32\nhidden_size: 4096\nnum_attention_heads: 32\nseq_length: 2048\n"
      "num_nodes: 1\nnum_gpus: 8\nmodel_parallel_size: 2\ntrain_batch_size: "
      "128\ngradient_accumulation_steps: 4\n",
      "neox.yml", {});
  CHECK(value_in(neox, "micro_batch") == "8");
}

TEST_CASE("launch needs: defaults and refusals of trainers that decide about memory") {
  const std::string sft =
      "trl sft --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --bf16 ";
  CHECK(value_in(of_script(sft), "recompute") == "full");
  CHECK(value_in(of_script(sft + "--gradient_checkpointing false"), "recompute") != "full");
}

TEST_CASE("launch needs: LLaMA-Factory on Megatron-Core has its own batches and lengths") {
  const LaunchedRun run = of_script(
      "USE_MCA=1 torchrun --nnodes 2 --nproc_per_node 8 src/train.py --stage pt --model_name_or_path "
      "Qwen/Qwen3-8B --finetuning_type full --cutoff_len 4096 --per_device_train_batch_size 4 "
      "--gradient_accumulation_steps 2 --bf16 --tensor_model_parallel_size 2 "
      "--pipeline_model_parallel_size 2\n");
  CHECK(run.framework == "LLaMA-Factory");
  CHECK(run.devices == 16);
  CHECK(value_in(run, "tensor_parallel") == "2");
  CHECK(value_in(run, "micro_batch") == "4");
  CHECK(value_in(run, "global_batch") == "32");
  CHECK(value_in(run, "sequence") == "4096");
}

TEST_CASE("launch needs: a sequence of a prompt and an answer is as long as both") {
  const std::string lengths =
      "torchrun --nproc_per_node 8 main.py --model_name_or_path Qwen/Qwen3-8B "
      "--per_device_train_batch_size 2 --max_source_length 256 --max_target_length 1024";
  CHECK(value_in(of_script(lengths), "sequence") == "1280");
  CHECK(value_in(of_script(lengths + " --max_seq_length 512"), "sequence") == "512");
  const std::string huge = " --max_source_length 9000000000000000000 --max_target_length 9000000000000000000";
  CHECK_THROWS_WITH_AS(of_script(lengths + huge), doctest::Contains("must be between 0 and 2147483647"),
                       InputError);
}

TEST_CASE("launch needs: a configuration that is not beside the script is named") {
  const LaunchFolder folder;
  const auto error = [&](const std::string& text) {
    try {
      read_launched_run(folder.with("run.sh", text));
      return std::string();
    } catch (const InputError& problem) {
      return std::string(problem.what());
    }
  };
  const std::string factory =
      "llamafactory-cli train examples/full.yaml model_name_or_path=Qwen/Qwen2.5-7B\n";
  CHECK(error(factory).find("examples/full.yaml, which is not beside") != std::string::npos);
  const std::string trl =
      "trl sft --config sft.yaml --per_device_train_batch_size 2 --model_name_or_path Qwen/Qwen2.5-7B\n";
  CHECK(error(trl).find("sft.yaml, which is not beside") != std::string::npos);
  CHECK(error("axolotl train run.yaml\n").find("axolotl (line 1; run.yaml is not beside") !=
        std::string::npos);
  const std::string other =
      "trl sft --dataset_mixer mix.yaml --model_name_or_path Qwen/Qwen2.5-7B "
      "--per_device_train_batch_size 2\n";
  CHECK(error(other).empty());  // no configuration of the run
}

}  // namespace headroom::tests::launch_needs

// What the words around a program say: launchers' options, variables, configurations and their overrides.
#include <string>

#include <doctest/doctest.h>

#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests::launch_words {
namespace {

constexpr const char* trainer_words =
    " train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --max_length 1024";

LaunchedRun started(const std::string& before, const std::string& after = "") {
  return read_launch_script(before + trainer_words + after, "run.sh", {});
}

}  // namespace

TEST_CASE("launch words: accelerate's options shard as its file would") {
  const LaunchedRun zero = started("accelerate launch --use_deepspeed --zero_stage 3 --num_processes 8");
  CHECK(value_in(zero, "data_sharding") == "zero3");
  CHECK(zero.software == "deepspeed-2025");
  CHECK(zero.devices == 8);
  CHECK(value_in(started("accelerate launch --use_deepspeed"), "data_sharding") == "zero2");
  const LaunchedRun fsdp = started("accelerate launch --use_fsdp --fsdp_sharding_strategy FULL_SHARD");
  CHECK(value_in(fsdp, "data_sharding") == "zero3");
  CHECK(fsdp.software == "hf-trainer");
}

TEST_CASE("launch words: GPUs of launchers, of variables, and of whole nodes") {
  CHECK(started("deepspeed --include localhost:0,1,2,3").devices == 4);
  CHECK(started("deepspeed --include worker-0:0,1@worker-1:0,1").devices == 4);
  CHECK(started("CUDA_VISIBLE_DEVICES=0,1 deepspeed").devices == 2);
  CHECK(started("export CUDA_VISIBLE_DEVICES=0,1,2\naccelerate launch").devices == 3);
  CHECK(started("CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 1").devices == 1);
  CHECK(started("NNODES=2 torchrun --nproc_per_node 4").devices == 4);  // which torchrun does not read
  for (const char* const command : {"deepspeed", "accelerate launch", "torchrun --nproc_per_node=gpu"}) {
    CAPTURE(command);
    const LaunchedRun run = started(command);
    CHECK_FALSE(run.devices);
    CHECK(run.nodes == 1);
  }
  CHECK(started("torchrun --nnodes 3 --nproc_per_node=gpu").nodes == 3);
}

TEST_CASE("whole nodes hold as many replicas as share the batch") {
  const auto devices = [](std::vector<LaunchSetting> strategy, std::int64_t nodes, std::int64_t each) {
    LaunchedRun run;
    run.strategy = std::move(strategy);
    run.nodes = nodes;
    take_whole_nodes(run, each);
    return *run.devices;
  };
  const auto set = [](std::string field, std::string value) {
    LaunchSetting setting;
    setting.field = std::move(field);
    setting.value = std::move(value);
    return setting;
  };
  CHECK(devices({}, 2, 8) == 16);
  CHECK(devices({set("tensor_parallel", "3")}, 1, 8) == 6);
  CHECK(devices({set("tensor_parallel", "4"), set("pipeline_parallel", "4")}, 1, 8) == 16);
  CHECK(devices({set("global_batch", "6"), set("micro_batch", "1")}, 1, 8) == 6);
  CHECK(devices({set("global_batch", "2"), set("micro_batch", "1")}, 1, 8) == 2);
  CHECK(devices({set("tensor_parallel", "5000000")}, 1, 8) == 1 << 20);
}

TEST_CASE("launch words: swift's own names") {
  const std::string start = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --max_length 2048 ";
  const LaunchedRun lora = read_launch_script(start + "--deepspeed zero3", "run.sh", {});
  CHECK(lora.devices == 8);
  CHECK(lora.model->name == "qwen2.5-7b");
  CHECK(value_in(lora, "lora_rank") == "8");
  CHECK(value_in(lora, "micro_batch") == "1");
  CHECK(value_in(lora, "global_batch") == "16");
  CHECK(value_in(lora, "data_sharding") == "zero3");
  CHECK(value_in(lora, "recompute") == "full");
  const std::string two = "export NNODES=2; ";
  CHECK(read_launch_script(two + start, "run.sh", {}).devices == 16);
  CHECK(value_in(read_launch_script(two + start, "run.sh", {}), "global_batch") == "16");
  CHECK(value_in(read_launch_script(start + "--train_type full", "run.sh", {}), "lora_rank").empty());
}

TEST_CASE("launch words: a configuration is where the script says, and words override it") {
  const LaunchFolder folder;
  const std::string recipe =
      "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 2\nmax_length: 2048\n";
  folder.with("recipes/sft.yaml", recipe);
  folder.with("sft.yaml", "model_name_or_path: Qwen/Qwen3-0.6B\nper_device_train_batch_size: 1\n");
  const std::string script = folder.with("run.sh", "");
  const std::string start = "accelerate launch --num_processes 4 sft.py --config recipes/sft.yaml ";
  const LaunchedRun run = read_launch_script(start, script, {});
  CHECK(run.model->name == "qwen3-8b");
  CHECK(run.devices == 4);
  CHECK(value_in(run, "sequence") == "2048");
  const LaunchedRun other =
      read_launch_script(start + "--max_length 4096 --per_device_train_batch_size=8", script, {});
  CHECK(other.model->name == "qwen3-8b");
  CHECK(value_in(other, "sequence") == "4096");
  CHECK(value_in(other, "micro_batch") == "8");
  folder.with(
      "titan.toml",
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 4096\nlocal_batch_size = 1\n");
  const LaunchedRun titan = read_launch_script("NGPU=4 CONFIG_FILE=titan.toml ./run_train.sh", script, {});
  CHECK(titan.framework == "torchtitan");
  CHECK(titan.devices == 4);
  const LaunchedRun tuned = read_launch_script("trl sft --config recipes/sft.yaml", script, {});
  CHECK(tuned.model->name == "qwen3-8b");
  CHECK(tuned.nodes == 1);
  const LaunchedRun factory = read_launch_script("llamafactory-cli train recipes/sft.yaml", script, {});
  CHECK(factory.model->name == "qwen3-8b");
  CHECK(factory.nodes == 1);
}

TEST_CASE("launch words: the last name of a path is the model's") {
  for (const char* const path : {"/data/models/Qwen2.5-7B-Instruct", "./Qwen2.5-7B/",
                                 "/hub/models--Qwen--Qwen2.5-7B/snapshots/0123abc"}) {
    CAPTURE(path);
    const LaunchedRun run = read_launch_script(
        std::string("torchrun train.py --per_device_train_batch_size 1 --model_name_or_path ") + path,
        "run.sh", {});
    REQUIRE(run.model);
    CHECK(run.model->name == "qwen2.5-7b");
    CHECK(says(run, "has the layers of"));
  }
  const LaunchedRun own = read_launch_script(
      "torchrun train.py --per_device_train_batch_size 1 --model_name_or_path /data/my-own", "run.sh", {});
  CHECK_FALSE(own.model);
}

TEST_CASE("launch words: adapters and losses of scripts that many copy") {
  CHECK_FALSE(value_in(started("torchrun --nproc_per_node 2", " --use_lora True"), "lora_rank").empty());
  CHECK(value_in(started("torchrun --nproc_per_node 2", " --use_llm_lora 16"), "lora_rank") == "16");
  CHECK(value_in(started("torchrun --nproc_per_node 2", " --use_llm_lora 0"), "lora_rank").empty());
  CHECK(value_in(started("torchrun --nproc_per_node 2", " --use_liger_kernel True"), "cross_entropy") ==
        "linear_fused");
  CHECK(
      says(started("torchrun --nproc_per_node 2", " --use_doro True"), "not known"));  // of the script itself
}

TEST_CASE("torchtitan's stages are cut as it cuts them") {
  const auto stages = [](const std::string& flavor, const std::string& more) {
    const LaunchedRun run =
        read_tree_file("[model]\nname = \"llama3\"\nflavor = \"" + flavor +
                           "\"\n[training]\nseq_len = 8192\nlocal_batch_size = 8\n[parallelism]\n"
                           "data_parallel_shard_degree = 2\npipeline_parallel_degree = 4\n" +
                           more,
                       "run.toml", {});
    return value_in(run, "stage_layers") + (run.refusals.empty() ? "" : " refused");
  };
  // 32 layers and two more for the ends are 9, 9, 8 and 8; the ends have one less.
  CHECK(stages("8B", "") == "8,9,8,7");
  CHECK(
      stages("8B",
             "pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 0\n")
          .empty());
  CHECK(stages("8B", "pipeline_parallel_layers_per_stage = 4\n") == " refused");  // nine stages of 1F1B
  CHECK(stages("8B", "pipeline_parallel_layers_per_stage = 9223372036854775807\n") == " refused");
  CHECK(stages("8B", "pipeline_parallel_first_stage_less_layers = 30\n").ends_with(" refused"));
  CHECK(stages("70B", "").starts_with("20,21,20,19"));
}

}  // namespace headroom::tests::launch_words

// Configurations that a script writes for its own program.
#include <doctest/doctest.h>

#include "headroom/interop/launched_run.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests {
namespace {

LaunchedRun writing_script(const std::string& text) {
  const LaunchFolder folder;
  return read_launched_run(folder.with("run.sh", text));
}

const std::string written_trainer =
    "run.py --model_name_or_path meta-llama/Llama-3.2-1B --per_device_train_batch_size 1 --bf16 "
    "--gradient_accumulation_steps 2 --max_seq_length 2048\n";

}  // namespace

TEST_CASE("written files: accelerate's configuration from a here-document") {
  const LaunchedRun run = writing_script(
      "config=configs/own.yaml\ncat <<EOF > $config\ndistributed_type: FSDP\nfsdp_config:\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n"
      "num_processes: $((2 * 2))\nEOF\naccelerate launch --config_file $config " +
      written_trainer);
  CHECK(run.devices == 4);
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(value_in(run, "no_reshard_after_forward") == "yes");
}

TEST_CASE("written files: DeepSpeed's configuration, in the place of one on the disk") {
  const LaunchFolder folder;
  folder.with("ds.json", R"({"zero_optimization": {"stage": 1}})");
  const std::string path = folder.with(
      "run.sh",
      "cat > ds.json <<EOF\n{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": "
      "\"cpu\", \"ratio\": 0.3}}, \"train_micro_batch_size_per_gpu\": \"auto\"}\nEOF\n"
      "deepspeed --num_gpus 4 --module " +
          written_trainer.substr(0, written_trainer.size() - 1) + " --deepspeed ds.json\n");
  const LaunchedRun run = read_launched_run(path);
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(value_in(run, "optimizer_offload_fraction") == "0.3");
}

TEST_CASE("written files: what only a run knows stays a need, in YAML as in JSON") {
  const LaunchedRun yaml = writing_script(
      "cat <<EOF > own.yaml\ndistributed_type: FSDP\nnum_processes: $(nvidia-smi --list-gpus | wc -l)\n"
      "EOF\naccelerate launch --config_file own.yaml " +
      written_trainer);
  CHECK_FALSE(yaml.devices);
  CHECK(says(yaml, "num_processes: ${nvidia-smi --list-gpus  wc -l} is known only when the job runs"));
  const LaunchedRun json = writing_script(
      "cat <<EOF > ds.json\n{\"zero_optimization\": {\"stage\": 2, \"reduce_bucket_size\": $(bucket)}}\nEOF\n"
      "torchrun --nproc_per_node 2 " +
      written_trainer.substr(0, written_trainer.size() - 1) + " --deepspeed ds.json\n");
  CHECK(value_in(json, "data_sharding") == "zero2");
}

TEST_CASE(
    "written files: Megatron-DeepSpeed keeps the scores of attention and hosts a share of the optimizer") {
  const std::string flags =
      "--num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 2048 "
      "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 8 --bf16 --zero-stage=3 "
      "--deepspeed --cpu-optimizer --deepspeed_config=$CONFIG";
  const std::string start =
      "CONFIG=ds.json\ncat <<EOF > $CONFIG\n{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": "
      "{\"device\": \"cpu\", \"ratio\": 0.5}}}\nEOF\ndeepspeed --num_gpus 8 pretrain_gpt.py ";
  const LaunchedRun run = writing_script(start + flags + "\n");
  CHECK(value_in(run, "optimizer_offload_fraction") == "0.5");
  REQUIRE(run.model);
  CHECK(run.model->architecture.kernels.attention == AttentionKernel::unfused);
  const LaunchedRun flash = writing_script(start + flags + " --use-flash-attn\n");
  CHECK(flash.model->architecture.kernels.attention == AttentionKernel::flash);
}

}  // namespace headroom::tests

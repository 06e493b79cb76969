// DeepSpeed and accelerate.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "io/text.hpp"

namespace headroom {

LaunchedRun read_deepspeed(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "DeepSpeed", "deepspeed-2025");
  TreeRun run(flattened(file.root, file.file), builder);
  RunScale scale;
  take_deepspeed(run, scale);
  run.rest(deepspeed_keys());
  settle(scale, builder);
  if (!scale.micro) assume_micro(builder);
  assume_sequence(builder);
  builder.assume("the model's own code says whether layers are checkpointed: --recompute full if they are");
  return builder.finish(options);
}

void take_accelerate(TreeRun& run, RunScale& scale) {
  RunBuilder& builder = run.builder();
  scale.devices = run.count("num_processes");
  scale.nodes = run.count("num_machines");
  if (scale.devices && scale.nodes && *scale.nodes > 0)
    scale.devices_per_node = *scale.devices / *scale.nodes;
  const std::string type = lower_case(run.text("distributed_type"));
  const std::string parallel = "parallelism_config.parallelism_config_";
  const auto axis = [&](std::string_view name) { return parallel + std::string(name); };
  scale.tensor = run.size("tensor_parallel", {axis("tp_size")});
  scale.context = run.size("context_parallel", {axis("cp_size"), axis("sp_size")});
  if (run.count(axis("sp_size")).value_or(1) > 1) builder.set("cp_comm", "a2a", run.find(axis("sp_size")));
  scale.shard = run.count(axis("dp_shard_size"));
  scale.replicate = run.count(axis("dp_replicate_size"));
  if (const Written* const rotate = run.find(axis("cp_comm_strategy"))) {
    builder.set("cp_comm", text_of_values(*rotate) == "alltoall" ? "p2p" : "all_gather", rotate);
  }
  if (const Written* const precision = run.find("mixed_precision")) {
    const std::string name = lower_case(text_of_values(*precision));
    if (name == "fp8") {
      builder.set("precision", "fp8_delayed", precision);
      builder.imply("fp8 of accelerate is Transformer Engine's by default: delayed scaling", precision);
    } else if (name != "no") {
      builder.set("precision", "bf16", precision);
      if (name == "fp16")
        builder.imply("fp16 takes the memory and time of bf16 here: 2 bytes an element", precision);
    } else {
      builder.leave_out(*precision, "products in fp32: they are taken as bf16");
    }
  }
  const Written* const file_of_deepspeed = run.find({"deepspeed_config.deepspeed_config_file"});
  if (file_of_deepspeed != nullptr) {
    take_deepspeed_of(run, "deepspeed_config.deepspeed_config_file", scale);
  } else if (run.has_below("deepspeed_config")) {
    const Written* const stage = run.find("deepspeed_config.zero_stage");
    take_zero_stage(std::min<std::int64_t>(run.count("deepspeed_config.zero_stage").value_or(2), 3), stage,
                    builder);
    if (stage == nullptr) builder.imply("zero_stage is 2 where it is not written");
    if (const Written* const device = run.find("deepspeed_config.offload_optimizer_device"))
      take_offload(false, *device, builder);
    if (const Written* const device = run.find("deepspeed_config.offload_param_device"))
      take_offload(true, *device, builder);
    if (const auto steps = run.count({"deepspeed_config.gradient_accumulation_steps"}))
      scale.accumulation = steps;
  } else if (type == "fsdp" || run.has_below("fsdp_config")) {
    TreeRun fsdp(without_prefix(run.below("fsdp_config"), "fsdp_"), builder);
    const auto version = fsdp.count("version").value_or(1);
    take_fsdp(fsdp, static_cast<int>(version), scale);
  } else if (run.has_below("megatron_lm_config")) {
    const std::string prefix = "megatron_lm_config.megatron_lm_";
    builder.use_software("megatron-core-2025");
    scale.tensor = run.size("tensor_parallel", {prefix + "tp_degree"});
    scale.pipeline = run.size("pipeline_parallel", {prefix + "pp_degree"});
    if (run.on(prefix + "sequence_parallelism"))
      builder.set("sequence_parallel", "yes", run.find(prefix + "sequence_parallelism"));
    if (run.on(prefix + "recompute_activations"))
      builder.set("recompute", "selective", run.find(prefix + "recompute_activations"));
    if (run.on(prefix + "use_distributed_optimizer"))
      builder.set("data_sharding", "zero1", run.find(prefix + "use_distributed_optimizer"));
  } else {
    plain_data_parallel(builder);
  }
  if (const Written* const steps = run.find("gradient_accumulation_steps");
      steps != nullptr && text_of_values(*steps) != "auto") {
    scale.accumulation = run.count("gradient_accumulation_steps");
  }
  if (const Written* const backend = run.find({"dynamo_config.dynamo_backend", "dynamo_backend"});
      backend != nullptr && lower_case(text_of_values(*backend)) == "inductor")
    builder.choose("launches", "compiled", backend);
  static constexpr LaunchKey keys[] = {
      {"compute_environment"},
      {"debug"},
      {"distributed_type"},
      {"downcast_bf16"},
      {"enable_cpu_affinity"},
      {"machine_rank"},
      {"main_process_ip"},
      {"main_process_port"},
      {"main_training_function"},
      {"rdzv_backend"},
      {"same_network"},
      {"tpu_*"},
      {"use_cpu", LaunchUse::unmodelled, "training on CPUs"},
      {"gpu_ids"},
      {"deepspeed_config.zero3_*"},
      {"deepspeed_config.gradient_clipping"},
      {"deepspeed_config.deepspeed_multinode_launcher"},
      {"deepspeed_config.deepspeed_hostfile"},
      {"deepspeed_config.deepspeed_inclusion_filter"},
      {"deepspeed_config.deepspeed_exclusion_filter"},
      {"deepspeed_config.offload_optimizer_nvme_path"},
      {"deepspeed_config.offload_param_nvme_path"},
      {"deepspeed_config.deepspeed_moe_layer_cls_names"},
      {"dynamo_config.*"},
      {"dynamo_backend"},
      {"fp8_config.*"},
      {"fsdp_config.*"},
      {"megatron_lm_config.megatron_lm_gradient_clipping"},
      {"megatron_lm_config.megatron_lm_num_micro_batches", LaunchUse::unmodelled,
       "microbatches of a step: give --global-batch"},
      {"megatron_lm_config.*"},
      {"command_file"},
      {"commands*"},
      {"mpirun_config.*"},
      {"ipex_config.*"},
      {"main_process*"},
      {"num_cpu_threads_per_process"},
      {"rdzv_*"},
      {"parallelism_config.*"},
  };
  run.rest(keys);
}

LaunchedRun read_accelerate(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "accelerate", "hf-trainer");
  TreeRun run(flattened(file.root, file.file), builder);
  RunScale scale;
  take_accelerate(run, scale);
  settle(scale, builder);
  if (!scale.micro) assume_micro(builder);
  assume_sequence(builder);
  if (scale.accumulation && !builder.count("global_batch")) builder.accumulation(*scale.accumulation);
  return builder.finish(options);
}

}  // namespace headroom

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
  refuse_no_batch(run, {file.file, 0}, batches_of_deepspeed);
  need_gpus_for_micro(run, scale);
  run.rest(deepspeed_keys());
  settle(scale, builder);
  if (!scale.micro && !scale.global) assume_micro(builder);
  assume_sequence(builder);
  builder.assume("the model's own code says whether layers are checkpointed: --recompute full if they are");
  return builder.finish(options);
}

namespace {

constexpr std::string_view parallelism_group = "parallelism_config.parallelism_config_";

// Values that accelerate has names for.
void refuse_other_names(TreeRun& run) {
  RunBuilder& builder = run.builder();
  if (const Written* const precision = run.find("mixed_precision")) {
    constexpr std::array<std::string_view, 5> names{"no", "fp16", "bf16", "fp8", "false"};  // "no" in YAML
    if (!contains(names, std::string_view(lower_case(text_of_values(*precision)))))
      builder.problem(*precision, "must be no, fp16, bf16 or fp8");
  }
  const Written* const wrap = run.find({"fsdp_config.fsdp_auto_wrap_policy", "fsdp_config.auto_wrap_policy"});
  if (wrap == nullptr) return;
  constexpr std::array<std::string_view, 4> policies{"transformer_based_wrap", "size_based_wrap", "no_wrap",
                                                     "none"};
  if (!contains(policies, std::string_view(lower_case(text_of_values(*wrap)))))
    builder.problem(*wrap, "must be TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP or NO_WRAP");
}

// FSDP's plugin [accelerate, utils/dataclasses.py, FullyShardedDataParallelPlugin].
void refuse_fsdp(TreeRun& run, std::int64_t version) {
  RunBuilder& builder = run.builder();
  const auto find = [&](const std::string& name) {
    return run.find({"fsdp_config.fsdp_" + name, "fsdp_config." + name});
  };
  constexpr std::string_view source = "accelerate, src/accelerate/utils/dataclasses.py";
  const Written* const reshard = find("reshard_after_forward");
  const std::string word = reshard == nullptr ? "true" : lower_case(text_of_values(*reshard));
  constexpr std::array<std::string_view, 12> truths{"true", "false", "yes", "no", "1", "0",
                                                    "on",   "off",   "y",   "n",  "t", "f"};
  if (version == 2 && !contains(truths, std::string_view(word)))
    builder.refuse({.fields = {"data_sharding"},
                    .rule = "must be true or false with fsdp_version 2",
                    .source = std::string(source),
                    .written = reshard->as_written,
                    .at = reshard->at});
  const Written* const state = find("state_dict_type");
  if (version == 2 && state != nullptr && lower_case(text_of_values(*state)) == "local_state_dict")
    builder.refuse({.fields = {"data_sharding"},
                    .rule = "fsdp_version 2 needs SHARDED_STATE_DICT or FULL_STATE_DICT",
                    .source = std::string(source),
                    .written = state->as_written,
                    .at = state->at});
}

}  // namespace

void refuse_parallelism(TreeRun& run, const RunScale& scale) {
  RunBuilder& builder = run.builder();
  const Written* const used = run.find("use_parallelism_config");
  if (!run.has_below("parallelism_config") || (used != nullptr && !is_on(*used))) return;
  std::int64_t product = 1;
  std::string sizes;
  const Written* from = nullptr;
  for (const std::string_view axis :
       {"dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size"}) {
    const std::string name = std::string(parallelism_group) + std::string(axis);
    const auto size = run.count(name);
    if (!size || *size < 1) continue;
    product *= *size;
    sizes += fmt::format("{}{}", sizes.empty() ? "" : " x ", *size);
    from = run.find(name);
  }
  if (from == nullptr) return;
  const std::string source = "accelerate, src/accelerate/parallelism_config.py";
  if (run.count(std::string(parallelism_group) + "cp_size").value_or(1) > 1 &&
      run.count(std::string(parallelism_group) + "sp_size").value_or(1) > 1)
    builder.refuse({.fields = {"context_parallel"},
                    .rule = "cp_size and sp_size cannot both be above 1",
                    .source = source,
                    .written = from->as_written,
                    .at = from->at});
  const bool deepspeed = run.has_below("deepspeed_config");
  if (!deepspeed && scale.devices && product != *scale.devices)
    builder.refuse(
        {.fields = {"tensor_parallel", "context_parallel", "data_parallel"},
         .rule = fmt::format("the sizes of parallelism_config must multiply to the {} processes ({} = {})",
                             *scale.devices, sizes, product),
         .source = source,
         .written = from->as_written,
         .at = from->at});
}

void take_accelerate(TreeRun& run, RunScale& scale) {
  RunBuilder& builder = run.builder();
  scale.devices = run.count("num_processes");
  scale.nodes = run.count("num_machines");
  if (scale.devices && scale.nodes && *scale.nodes > 0)
    scale.devices_per_node = *scale.devices / *scale.nodes;
  const std::string type = lower_case(run.text("distributed_type"));
  const auto axis = [&](std::string_view name) { return std::string(parallelism_group) + std::string(name); };
  refuse_other_names(run);
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
  for (const Written& setting : run.below("unread"))
    builder.leave_out(setting, "accelerate reads it only with --use_deepspeed");
  const Written* const absent = run.find(absent_configuration);
  std::string name = absent == nullptr ? std::string() : lower_case(text_of_values(*absent));
  name.erase(0, name.find_last_of('/') + 1);
  if (absent != nullptr)
    builder.unresolved(fmt::format("{}: no such file (put it where {} expects it, or give --data-sharding)",
                                   printable(absent->as_written), printable(absent->at.file, 200)),
                       absent->at);
  const bool says = run.has_below("deepspeed_config") || run.has_below("fsdp_config") || type == "fsdp";
  const Written* const file_of_deepspeed = run.find({"deepspeed_config.deepspeed_config_file"});
  if (file_of_deepspeed != nullptr) {
    take_deepspeed_of(run, "deepspeed_config.deepspeed_config_file", scale);
  } else if (run.has_below("deepspeed_config") || (type == "deepspeed" && !builder.value("data_sharding"))) {
    const Written* const stage = run.find({"deepspeed_config.zero_stage"}, "data_sharding");
    take_zero_stage(run.count("deepspeed_config.zero_stage").value_or(2), stage, builder);
    if (stage == nullptr && !run.is_open({"deepspeed_config.zero_stage"}))
      builder.imply("zero_stage is 2 where it is not written");
    if (const Written* const device = run.find("deepspeed_config.offload_optimizer_device"))
      take_offload(false, *device, builder);
    if (const Written* const device = run.find("deepspeed_config.offload_param_device"))
      take_offload(true, *device, builder);
    if (const auto steps = run.above_zero({"deepspeed_config.gradient_accumulation_steps"}))
      scale.accumulation = steps;
  } else if (!says && !stage_in_name(name).empty()) {
    take_zero_stage(stage_in_name(name).back() - '0', absent, builder);
    builder.assume(fmt::format("{} is taken for ZeRO stage {} by its name", printable(absent->as_written),
                               stage_in_name(name).back()),
                   absent);
  } else if (!says && name.find("fsdp") != std::string::npos) {
    builder.set("data_sharding", "zero3", absent);
    builder.assume(
        fmt::format("{} is taken for FSDP's full sharding by its name", printable(absent->as_written)),
        absent);
  } else if (type == "fsdp" || run.has_below("fsdp_config")) {
    const auto version = run.count({"fsdp_config.fsdp_version", "fsdp_config.version"}).value_or(1);
    refuse_fsdp(run, version);
    const bool wraps =
        run.has("fsdp_config.fsdp_auto_wrap_policy") || run.has("fsdp_config.auto_wrap_policy");
    TreeRun fsdp(without_prefix(run.below("fsdp_config"), "fsdp_"), builder);
    if (!wraps)
      builder.assume(
          "fsdp_auto_wrap_policy is not written, so the whole model is one unit (NO_WRAP): units are layers "
          "here, which take less memory");
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
    scale.accumulation = run.above_zero({"gradient_accumulation_steps"});
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
      {"unread.*"},
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
  refuse_parallelism(run, scale);
  settle(scale, builder);
  if (!scale.micro) assume_micro(builder);
  assume_sequence(builder);
  if (scale.accumulation && !builder.count("global_batch")) builder.accumulation(*scale.accumulation);
  return builder.finish(options);
}

}  // namespace headroom

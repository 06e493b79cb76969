#include "interop/launch_in/trainer_parts.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::string_view deepspeed_stack = "deepspeed-2025";
constexpr std::string_view trainer_stack = "hf-trainer";

constexpr LaunchKey keys_of_deepspeed[] = {
    {"zero_optimization.allgather_bucket_size", LaunchUse::unmodelled, "buckets of gathers"},
    {"zero_optimization.allgather_partitions"},
    {"zero_optimization.reduce_scatter"},
    {"zero_optimization.contiguous_gradients"},
    {"zero_optimization.round_robin_gradients"},
    {"zero_optimization.sub_group_size", LaunchUse::unmodelled, "parts of the step"},
    {"zero_optimization.offload_optimizer.*"},
    {"zero_optimization.offload_param.*"},
    {"zero_optimization.offload_states.*", LaunchUse::unmodelled, "states on the host between steps"},
    {"zero_optimization.stage3_prefetch_bucket_size", LaunchUse::unmodelled,
     "weights that are gathered early"},
    {"zero_optimization.prefetch_bucket_size", LaunchUse::unmodelled, "weights that are gathered early"},
    {"zero_optimization.stage3_max_live_parameters", LaunchUse::unmodelled, "weights that stay gathered"},
    {"zero_optimization.max_live_parameters", LaunchUse::unmodelled, "weights that stay gathered"},
    {"zero_optimization.stage3_max_reuse_distance", LaunchUse::unmodelled, "weights that stay gathered"},
    {"zero_optimization.max_reuse_distance", LaunchUse::unmodelled, "weights that stay gathered"},
    {"zero_optimization.stage3_param_persistence_threshold", LaunchUse::unmodelled,
     "small weights that every rank keeps"},
    {"zero_optimization.param_persistence_threshold", LaunchUse::unmodelled,
     "small weights that every rank keeps"},
    {"zero_optimization.model_persistence_threshold", LaunchUse::unmodelled,
     "small weights that every rank keeps"},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save"},
    {"zero_optimization.gather_16bit_weights_on_model_save"},
    {"zero_optimization.load_from_fp32_weights"},
    {"zero_optimization.elastic_checkpoint"},
    {"zero_optimization.ignore_unused_parameters"},
    {"zero_optimization.memory_efficient_linear"},
    {"zero_optimization.use_multi_rank_bucket_allreduce"},
    {"zero_optimization.zero_hpz_partition_size", LaunchUse::unmodelled,
     "secondary shards within a node (ZeRO++)"},
    {"zero_optimization.zero_quantized_weights", LaunchUse::unmodelled, "quantized gathers (ZeRO++)"},
    {"zero_optimization.zero_quantized_gradients", LaunchUse::unmodelled, "quantized reductions (ZeRO++)"},
    {"zero_optimization.zero_quantized_nontrainable_weights", LaunchUse::unmodelled,
     "quantized frozen weights"},
    {"zero_optimization.mics_*", LaunchUse::unmodelled, "MiCS"},
    {"zero_optimization.leaf_module.*"},
    {"zero_optimization.log_trace_cache_warnings"},
    {"zero_allow_untested_optimizer"},
    {"zero_force_ds_cpu_optimizer"},
    {"bf16.*"},
    {"bfloat16.*"},
    {"fp16.*"},
    {"amp.*", LaunchUse::unmodelled, "Apex's mixed precision"},
    {"gradient_clipping"},
    {"prescale_gradients"},
    {"gradient_predivide_factor"},
    {"sparse_gradients"},
    {"optimizer.*"},
    {"scheduler.*"},
    {"steps_per_print"},
    {"wall_clock_breakdown", LaunchUse::unmodelled, "timers that wait for the GPU"},
    {"flops_profiler.*"},
    {"comms_logger.*"},
    {"aio.*"},
    {"checkpoint.*"},
    {"activation_checkpointing.*"},
    {"tensorboard.*"},
    {"compile.*", LaunchUse::unmodelled, "DeepCompile"},
    {"seq_parallel_communication_data_type"},
    {"communication_data_type", LaunchUse::unmodelled, "the dtype of reductions"},
    {"elasticity.*"},
};

}  // namespace

void take_optimizer(const Written& setting, RunBuilder& builder) {
  const std::string name = lower_case(text_of_values(setting));
  const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (is("8bit") || is("bnb_4bit") || is("4bit")) {
    if (is("4bit")) builder.leave_out(setting, "4-bit moments: read as those of 8 bits");
    if (is("paged"))
      builder.leave_out(setting,
                        "moments that page to the host when memory runs out: they are counted on the GPU");
    builder.set("optimizer", "adam", &setting);
    builder.set("exp_avg_dtype", "int8", &setting);
    builder.set("exp_avg_sq_dtype", "int8", &setting);
    // Only bitsandbytes has moments of 32 bits for some weights [transformers, trainer.py, create_optimizer].
    if (is("torch")) builder.choose("memory.fp32_embedding_moments", "false", &setting);
  } else if (is("fp8")) {
    builder.set("exp_avg_dtype", "fp8", &setting);
    builder.set("exp_avg_sq_dtype", "fp8", &setting);
  } else if (is("galore") || is("apollo") || is("lomo") || is("lion") || is("sophia") || is("grokadamw") ||
             is("shampoo")) {
    builder.leave_out(setting, "read as Adam, which keeps two moments of each weight");
  } else if (is("adafactor")) {
    builder.set("optimizer", "adafactor", &setting);
  } else if (is("muon")) {
    builder.set("optimizer", "muon", &setting);
  } else if (name == "sgd" || is("pagedsgd")) {
    builder.set("optimizer", "sgd", &setting);
  } else if (is("adam")) {
    builder.set("optimizer", "adam", &setting);
    if (is("paged"))
      builder.leave_out(setting,
                        "moments that page to the host when memory runs out: they are counted on the GPU");
  } else {
    builder.leave_out(setting, "not known: read as Adam");
  }
}

void take_lora_targets(const Written& setting, RunBuilder& builder) {
  constexpr std::array<std::string_view, 19> known{"linear_q_down_proj",
                                                   "linear_q_up_proj",
                                                   "linear_kv_down_proj",
                                                   "linear_kv_up_proj",
                                                   "q_proj",
                                                   "k_proj",
                                                   "v_proj",
                                                   "o_proj",
                                                   "gate_proj",
                                                   "up_proj",
                                                   "down_proj",
                                                   "linear_qkv",
                                                   "linear_proj",
                                                   "linear_fc1",
                                                   "linear_fc2",
                                                   "q_a_proj",
                                                   "q_b_proj",
                                                   "kv_a_proj_with_mqa",
                                                   "kv_b_proj"};
  std::vector<std::string> items = setting.values;
  if (items.size() == 1 && items.front().find(',') != std::string::npos) {
    std::string text = std::move(items.front());
    items.clear();
    std::string word;
    for (const char c : text + ',') {
      if (c == ',') {
        items.push_back(std::move(word));
        word.clear();
      } else if (c != ' ') {
        word += c;
      }
    }
  }
  std::string targets;
  for (const std::string& item : items) {
    if (item == "all" || item == "all-linear") return builder.set("lora_targets", "all-linear", &setting);
    std::string name = item.substr(item.rfind('.') + 1);
    // Queries, keys and values as one linear, under the names of MPT and DBRX, Falcon and GLM, Phi-3, Baichuan; and the
    // linears of Megatron-LM's own layers, with MindSpeed-LLM's gate and up projection as "proj".
    using Name = std::array<std::string_view, 2>;
    constexpr std::array<Name, 8> other_names{
        Name{"Wqkv", "linear_qkv"},      {"query_key_value", "linear_qkv"}, {"qkv_proj", "linear_qkv"},
        {"W_pack", "linear_qkv"},        {"dense", "linear_proj"},          {"proj", "linear_fc1"},
        {"dense_h_to_4h", "linear_fc1"}, {"dense_4h_to_h", "linear_fc2"}};
    for (const auto& [theirs, ours] : other_names) {
      if (name == theirs) name = std::string(ours);
    }
    if (contains(known, std::string_view(name))) {
      if (("," + targets + ",").find("," + name + ",") == std::string::npos)
        targets += (targets.empty() ? "" : ",") + name;
    } else {
      builder.leave_out(setting, "no linear that is modelled with an adapter: " + printable(item));
    }
  }
  if (!targets.empty()) builder.set("lora_targets", targets, &setting);
}

void offload_all(const Written* from, RunBuilder& builder) {
  builder.set("optimizer_offload_fraction", "1", from);
  builder.set("offload_parameters", "yes", from);
}

void plain_data_parallel(RunBuilder& builder) {
  builder.use_software(std::string(trainer_stack));
  if (!builder.value("data_sharding")) {
    builder.set("data_sharding", "none", nullptr);
    builder.imply("no sharding is configured: data-parallel ranks are whole replicas (DDP)");
  }
}

void take_fsdp(TreeRun& fsdp, int version, RunScale& scale) {
  RunBuilder& builder = fsdp.builder();
  builder.use_software(std::string(trainer_stack));
  const std::string mode = lower_case(fsdp.text("sharding_strategy"));
  const Written* const from = fsdp.find("sharding_strategy");
  const Written* const reshard = fsdp.find("reshard_after_forward");
  bool gathered_again = reshard == nullptr || is_on(*reshard);
  const std::string word = mode.empty() && reshard != nullptr ? lower_case(text_of_values(*reshard)) : mode;
  const auto is = [&](std::string_view name, std::string_view number) {
    return word == name || word == number;
  };
  bool shards = true;
  if (is("no_shard", "3")) shards = false;
  if (is("shard_grad_op", "2") || is("hybrid_shard_zero2", "5")) gathered_again = false;
  if (is("hybrid_shard", "4") || is("hybrid_shard_zero2", "5") || word == "_hybrid_shard_zero2") {
    if (!scale.shard) scale.shard = scale.devices_per_node;
    if (scale.shard && scale.devices && *scale.shard > 0 && *scale.devices % *scale.shard == 0)
      scale.replicate = *scale.devices / *scale.shard;
    if (!scale.shard)
      builder.unresolved(
          "HYBRID_SHARD shards within a node, whose GPUs the file does not say: give --shard-size", from->at);
  }
  const Written* const origin = from != nullptr ? from : reshard;
  builder.set("data_sharding", shards ? "zero3" : "none", origin);
  if (origin == nullptr)
    builder.imply(fmt::format("FSDP{} shards weights, gradients and optimizer state", version));
  if (!gathered_again) builder.set("no_reshard_after_forward", "yes", origin);
  if (const Written* const offload = fsdp.find("offload_params"); offload != nullptr && is_on(*offload))
    offload_all(offload, builder);
  if (const Written* const checkpoints = fsdp.find("activation_checkpointing");
      checkpoints != nullptr && is_on(*checkpoints))
    builder.set("recompute", "full", checkpoints);
  const Written* const wrap = fsdp.find("auto_wrap_policy");
  if (wrap != nullptr && lower_case(text_of_values(*wrap)) == "no_wrap")
    builder.leave_out(*wrap, "one unit of the whole model: units are layers here");
  static constexpr LaunchKey keys[] = {
      {"auto_wrap_policy"},
      {"backward_prefetch*"},
      {"forward_prefetch"},
      {"cpu_ram_efficient_loading"},
      {"sync_module_states"},
      {"use_orig_params"},
      {"state_dict_type"},
      {"final_state_dict_type"},
      {"transformer_layer_cls_to_wrap"},
      {"min_num_params"},
      {"limit_all_gathers"},
      {"ignored_modules"},
      {"version"},
      {"xla*", LaunchUse::unmodelled, "XLA's FSDP"},
      {"dtype"},
      {"mixed_precision_policy"},
      {"mixed_precision*"},
      {"activation_checkpointing_reentrant"},
      {"activation_cpu_offload", LaunchUse::unmodelled, "activations on the host"},
      {"load_planner*"},
      {"flatten_parameters"},
      {"verbose"},
      {"process_group"},
      {"device_mesh"},
  };
  fsdp.rest(keys);
}

void take_offload(bool parameters, const Written& device, RunBuilder& builder) {
  const std::string name = lower_case(text_of_values(device));
  if (name == "none") return;
  if (name == "nvme") builder.leave_out(device, "state on NVMe: it is counted on the host");
  builder.set("optimizer_offload_fraction", "1", &device);
  if (parameters) builder.set("offload_parameters", "yes", &device);
}

namespace {

// Whether a switch is on by its own value: "auto" is the trainer's.
bool is_stated_on(const Written* setting) {
  return setting != nullptr && is_on(*setting) && text_of_values(*setting) != "auto";
}

}  // namespace

void shard_bf16_states(const Written* from, RunBuilder& builder) {
  builder.set("data_sharding", "zero1", from);
  builder.set("gradient_dtype", "fp32", nullptr);
  builder.imply("without ZeRO, DeepSpeed's BF16 optimizer shards its states and sums gradients in FP32",
                from);
}

bool trains_in_bf16(TreeRun& run) {
  return is_stated_on(run.find("bf16.enabled")) || is_stated_on(run.find("bfloat16.enabled")) ||
         run.text("precision") == "bfloat16";  // of GPT-NeoX
}

void take_zero_stage(std::int64_t stage, const Written* from, RunBuilder& builder, bool bf16) {
  if (stage == 0 && bf16) {
    builder.use_software(std::string(deepspeed_stack));
    return shard_bf16_states(from, builder);
  }
  builder.use_software(std::string(stage == 0 ? trainer_stack : deepspeed_stack));
  builder.set("data_sharding", stage == 0 ? "none" : fmt::format("zero{}", stage), from);
  if (stage == 0) builder.assume("ZeRO stage 0 is priced as plain data parallelism (DDP)", from);
}

std::span<const LaunchKey> deepspeed_keys() { return keys_of_deepspeed; }

namespace {

// What the Trainer says of the same thing must be DeepSpeed's own value.
void refuse_other_value(const Written& setting, const std::string& ours, std::string_view field,
                        std::string_view theirs, RunBuilder& builder) {
  builder.refuse({.fields = {std::string(field)},
                  .rule = fmt::format("must be the Trainer's {}, {}: write auto", theirs, ours),
                  .source = "Hugging Face transformers, integrations/deepspeed.py",
                  .written = setting.as_written,
                  .at = setting.at});
}

// Batches and dtypes that the Trainer has read before: it refuses others in DeepSpeed's file.
void refuse_other_than_trainer(TreeRun& run, const RunScale& before) {
  RunBuilder& builder = run.builder();
  const std::string& framework = builder.so_far().framework;
  if (framework != "Hugging Face Trainer" && framework != "axolotl" && framework != "LLaMA-Factory") return;
  const Written* const micro = run.find("train_micro_batch_size_per_gpu");
  if (const auto count = run.count("train_micro_batch_size_per_gpu");
      count && before.micro && *count > 0 && *count != *before.micro)
    refuse_other_value(*micro, std::to_string(*before.micro), "micro_batch", "per_device_train_batch_size",
                       builder);
  const Written* const steps = run.find("gradient_accumulation_steps");
  if (const auto count = run.count("gradient_accumulation_steps");
      count && before.accumulation && *count > 0 && *count != *before.accumulation)
    refuse_other_value(*steps, std::to_string(*before.accumulation), "global_batch",
                       "gradient_accumulation_steps", builder);
  const auto& strategy = builder.so_far().strategy;
  const auto precision = std::find_if(strategy.begin(), strategy.end(), [](const LaunchSetting& setting) {
    return setting.field == "precision";
  });
  if (precision == strategy.end()) return;
  const Written* const half = run.find("fp16.enabled");
  if (is_stated_on(half) && precision->written.find("bf16") != std::string::npos)
    refuse_other_value(*half, "false", "precision", "fp16", builder);
}

void refuse_both_enabled(TreeRun& run) {
  const Written* const half = run.find("fp16.enabled");
  const Written* const brain = run.find({"bf16.enabled", "bfloat16.enabled"});
  if (!is_stated_on(half) || !is_stated_on(brain)) return;
  run.builder().refuse({.fields = {"precision"},
                        .rule = "bf16 and fp16 cannot both be enabled",
                        .source = "DeepSpeed, deepspeed/runtime/config.py",
                        .written = half->as_written,
                        .at = half->at});
}

}  // namespace

void take_stated_batches(TreeRun& run, RunScale& scale, std::string_view source,
                         std::optional<std::int64_t> accumulation) {
  RunBuilder& builder = run.builder();
  auto micro = run.above_zero({"train_micro_batch_size_per_gpu"}, "micro_batch");
  const auto batch = run.above_zero({"train_batch_size"}, "global_batch");
  if (micro) {
    scale.micro = micro;
    builder.set("micro_batch", std::to_string(*micro), run.find("train_micro_batch_size_per_gpu"));
  }
  if (const auto stated = run.above_zero({"gradient_accumulation_steps"}, "global_batch"))
    accumulation = stated;
  if (accumulation) scale.accumulation = accumulation;
  if (!batch) return;
  // The Trainer compares the batch with its own sizes [transformers, integrations/deepspeed.py, trainer_config_process].
  if (!micro && builder.so_far().framework == "Hugging Face Trainer") {
    micro = scale.micro;
    accumulation = accumulation ? accumulation : scale.accumulation;
  }
  const Written* const at = run.find("train_batch_size");
  scale.global = batch;
  builder.set("global_batch", std::to_string(*batch), at);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // products of two are still counts
  if (!micro || !accumulation || *batch > most || *micro > most || *accumulation > most) return;
  builder.state_batch({.batch = *batch,
                       .micro = *micro,
                       .accumulation = *accumulation,
                       .source = std::string(source),
                       .written = at->as_written,
                       .at = at->at});
  const std::int64_t of_rank = *micro * *accumulation;
  if (scale.devices || (scale.nodes && scale.devices_per_node) || *batch % of_rank != 0) return;
  const std::int64_t ranks = *batch / of_rank;
  scale.devices = ranks * scale.tensor * scale.pipeline * scale.context;
  builder.imply(fmt::format("DP is train_batch_size / (microbatch x accumulation) = {} / ({} x {}) = {}",
                            *batch, *micro, *accumulation, ranks),
                at);
}

void refuse_no_batch(TreeRun& run, const FilePlace& at, std::string_view source) {
  if (run.has("train_batch_size") || run.has("train_micro_batch_size_per_gpu")) return;
  run.builder().refuse({.fields = {"micro_batch"},
                        .rule = "needs train_batch_size or train_micro_batch_size_per_gpu",
                        .source = std::string(source),
                        .written = {},
                        .at = at});
}

void need_gpus_for_micro(TreeRun& run, RunScale& scale) {
  constexpr std::string_view name = "train_micro_batch_size_per_gpu";
  if (run.has(name) || !scale.global) return;
  if (!scale.accumulation) scale.accumulation = 1;
  if (scale.devices || (scale.nodes && scale.devices_per_node)) return;
  Written micro{std::string(name), {}, std::string(name), run.find("train_batch_size")->at, {}};
  micro.unknown =
      "is train_batch_size / (accumulation x DP), and the file does not say the GPUs: give --micro-batch";
  run.builder().unresolved(micro, "micro_batch");
}

void take_deepspeed(TreeRun& run, RunScale& scale) {
  RunBuilder& builder = run.builder();
  refuse_other_than_trainer(run, scale);
  refuse_both_enabled(run);
  const Written* const stage_at = run.find("zero_optimization.stage");
  const std::int64_t stage = run.count("zero_optimization.stage").value_or(0);
  if (stage > 3) {
    builder.problem(*stage_at, "must be 0 to 3");
  } else {
    take_zero_stage(stage, stage_at, builder, trains_in_bf16(run));
  }
  if (const auto tensor = run.count({"tensor_parallel.autotp_size", "tensor_parallel.tp.tp_size"});
      tensor && *tensor > 0) {
    scale.tensor = *tensor;
    builder.set("tensor_parallel", std::to_string(*tensor),
                run.find({"tensor_parallel.autotp_size", "tensor_parallel.tp.tp_size"}));
  }
  if (const auto ulysses = run.count("sequence_parallel_size"); ulysses && *ulysses > 1) {
    scale.context = *ulysses;
    builder.set("context_parallel", std::to_string(*ulysses), run.find("sequence_parallel_size"));
    builder.set("cp_comm", "a2a", nullptr);
    builder.imply("DeepSpeed's sequence parallelism is Ulysses: all-to-alls (cp_comm a2a)");
  }
  if (const auto stages = run.count("pipeline.stages"); stages && *stages > 0) {
    scale.pipeline = *stages;
    builder.set("pipeline_parallel", std::to_string(*stages), run.find("pipeline.stages"));
  }
  take_stated_batches(run, scale, batches_of_deepspeed);
  const Written* const overlap = run.find("zero_optimization.overlap_comm");
  const bool stated = overlap != nullptr && text_of_values(*overlap) != "auto";
  builder.choose("overlap_grad_reduce", (stated ? is_on(*overlap) : stage == 3) ? "true" : "false",
                 stated ? overlap : nullptr);
  if (!stated && stage > 0) {
    builder.imply(fmt::format("overlap_comm is {} at stage {} where it is not written",
                              stage == 3 ? "on" : "off", stage),
                  stage_at);
  }
  if (const auto bucket = run.count("zero_optimization.reduce_bucket_size"); bucket && *bucket > 0) {
    builder.choose("bucket_parameters", std::to_string(*bucket),
                   run.find("zero_optimization.reduce_bucket_size"));
  } else if (run.text("zero_optimization.reduce_bucket_size") == "auto") {
    builder.imply("buckets that are auto hold hidden x hidden elements; here they are the stack's",
                  run.find("zero_optimization.reduce_bucket_size"));
  }
  for (const bool parameters : {false, true}) {
    const std::string name =
        parameters ? "zero_optimization.offload_param" : "zero_optimization.offload_optimizer";
    if (const Written* const device = run.find(name + ".device")) {
      take_offload(parameters, *device, builder);
    }
  }
  if (const Written* const ratio = run.find("zero_optimization.offload_optimizer.ratio");
      ratio != nullptr && builder.value("optimizer_offload_fraction"))
    builder.set("optimizer_offload_fraction", text_of_values(*ratio), ratio);
  if (const Written* const old = run.find("zero_optimization.cpu_offload"); old != nullptr && is_on(*old))
    builder.set("optimizer_offload_fraction", "1", old);
  if (const Written* const old = run.find("zero_optimization.cpu_offload_params");
      old != nullptr && is_on(*old))
    offload_all(old, builder);
  for (const std::string_view name : {"bf16.enabled", "bfloat16.enabled", "fp16.enabled"}) {
    const Written* const setting = run.find(name);
    if (!is_stated_on(setting)) continue;
    builder.set("precision", "bf16", setting);
    if (name == "fp16.enabled")
      builder.imply("fp16 takes the memory and time of bf16 here: 2 bytes an element", setting);
  }
  if (const std::string dtype = lower_case(run.text("data_types.grad_accum_dtype"));
      !dtype.empty() && dtype != "auto")
    builder.set("gradient_dtype", dtype, run.find("data_types.grad_accum_dtype"));
  if (const Written* const parts = run.find("activation_checkpointing.partition_activations");
      parts != nullptr && is_on(*parts)) {
    if (builder.value("recompute") == "full") builder.set("distribute_saved_activations", "yes", parts);
  }
  if (const Written* const host = run.find("activation_checkpointing.cpu_checkpointing");
      host != nullptr && is_on(*host)) {
    if (builder.value("recompute") == "full") {
      builder.set("offload_modules", "layer_input", host);
    } else {
      builder.leave_out(*host,
                        "the model's own code checkpoints layers: give --recompute full --offload-modules "
                        "layer_input if it does");
    }
  }
  if (const Written* const type = run.find("optimizer.type");
      type != nullptr && text_of_values(*type) != "auto")
    take_optimizer(*type, builder);
}

}  // namespace headroom

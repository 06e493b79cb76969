#include "headroom/interop/launch_flags.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "interop/launcher_flags.hpp"
#include "interop/megatron_flags.hpp"
#include "interop/titan_flags.hpp"

namespace headroom {
namespace {

// The fields of a strategy that a launcher's flags say, or say why not, or that follow from the GPUs it is started on. Of any other field
// whose value is not a stack's own it is said that there is no flag.
using Fields = std::span<const std::string_view>;

constexpr std::string_view all_told[] = {"data_parallel", "micro_batch",      "recompute",
                                         "recompute_ops", "recompute_layers", "recompute_method",
                                         "data_sharding"};
constexpr std::string_view optimizer_fields[] = {"optimizer", "main_params_dtype", "exp_avg_dtype",
                                                 "exp_avg_sq_dtype"};
constexpr std::string_view adapter_fields[] = {"lora_rank", "lora_targets", "lora_dropout", "base_dtype"};
// Of the fork's megatron/training/arguments.py, and Megatron-Core's beside them.
constexpr std::string_view zero_bubble_told[] = {"tensor_parallel",
                                                 "pipeline_parallel",
                                                 "virtual_pipeline",
                                                 "context_parallel",
                                                 "expert_parallel",
                                                 "expert_tensor_parallel",
                                                 "moe_dispatcher",
                                                 "schedule",
                                                 "stage_layers",
                                                 "sequence_parallel",
                                                 "distribute_saved_activations",
                                                 "keep_pipeline_outputs",
                                                 "optimizer"};
constexpr std::string_view megatron_told[] = {"cp_comm",
                                              "hierarchical_cp_sizes",
                                              "moe_router_padding",
                                              "moe_pad_to_capacity",
                                              "overlap_expert_all_to_all",
                                              "microbatch_group_size",
                                              "shard_size",
                                              "no_reshard_after_forward",
                                              "precision",
                                              "fp8_param_gather",
                                              "bf16_layers_at_start",
                                              "bf16_layers_at_end",
                                              "fp8_attention",
                                              "fp8_output_layer",
                                              "bf16_modules",
                                              "tp_only_amax_red",
                                              "gradient_dtype",
                                              "optimizer_offload_fraction",
                                              "overlap_cpu_optimizer",
                                              "offload_parameters",
                                              "offload_modules",
                                              "offload_layers"};
constexpr std::string_view titan_told[] = {"tensor_parallel",
                                           "pipeline_parallel",
                                           "virtual_pipeline",
                                           "context_parallel",
                                           "cp_comm",
                                           "expert_parallel",
                                           "expert_tensor_parallel",
                                           "moe_dispatcher",
                                           "schedule",
                                           "stage_layers",
                                           "sequence_parallel",
                                           "shard_size",
                                           "no_reshard_after_forward",
                                           "precision",
                                           "gradient_dtype",
                                           "optimizer_offload_fraction",
                                           "offload_parameters"};
constexpr std::string_view deepspeed_told[] = {
    "tensor_parallel", "pipeline_parallel",          "schedule",           "shard_size",
    "gradient_dtype",  "optimizer_offload_fraction", "offload_parameters", "offload_modules"};
constexpr std::string_view accelerate_told[] = {
    "shard_size",     "no_reshard_after_forward",   "sync_each_batch",
    "gradient_dtype", "optimizer_offload_fraction", "offload_parameters"};

std::vector<Fields> told_to(Launcher launcher) {
  switch (launcher) {
    case Launcher::megatron_lm:
    case Launcher::megatron_bridge:
      return {all_told, zero_bubble_told, megatron_told, optimizer_fields, adapter_fields};
    case Launcher::zero_bubble: return {all_told, zero_bubble_told};
    case Launcher::torchtitan: return {all_told, titan_told};
    case Launcher::deepspeed: return {all_told, deepspeed_told, optimizer_fields};
    case Launcher::accelerate: return {all_told, accelerate_told, optimizer_fields, adapter_fields};
  }
  EXPECTS(!"unknown launcher");
  return {};
}

// The strategy without what the launcher is not told, which `untold` then names.
Strategy told_part(const Transformer& model, const Strategy& strategy, const Software& software,
                   std::vector<std::string>& untold) {
  const std::vector<Fields> told = told_to(*software.launcher);
  const Strategy plain = with_stack_defaults({}, software, model);
  Strategy part = strategy;
  Workload none;
  for (const StrategyField& field : strategy_fields) {
    const std::string value = value_of(field, strategy, none);
    const std::string usual = value_of(field, plain, none);
    const bool is_told =
        std::any_of(told.begin(), told.end(), [&](Fields fields) { return contains(fields, field.name); });
    if (value == usual || is_told) continue;
    untold.push_back(flags_of({{std::string(field.name), value}}));
    set_value(field, usual, part, none);
  }
  return part;
}

// Keys of its JSON file, a path each.
LaunchFlags deepspeed_flags(const Strategy& strategy, const Workload& workload, const Software& software) {
  FlagList flags(Launcher::deepspeed);
  const std::int64_t n = microbatches(strategy, workload);
  flags.add("train_micro_batch_size_per_gpu", strategy.micro_batch);
  flags.add("gradient_accumulation_steps", n);
  flags.add("train_batch_size", workload.global_batch);
  flags.add("bf16.enabled", "true");
  // A replica alone has nothing to divide, and without ZeRO sums of BF16 are refused [deepspeed/runtime/engine.py, get_data_types].
  const DataSharding sharding = std::max(strategy.data_sharding, DataSharding::zero1);
  flags.add("zero_optimization.stage", static_cast<std::int64_t>(sharding));
  if (software.overlap_grad_reduce) flags.add("zero_optimization.overlap_comm", "true");
  if (strategy.shard_size > 0 && strategy.shard_size < replicas(strategy)) {
    if (strategy.data_sharding == DataSharding::zero3) {
      flags.add("zero_optimization.mics_shard_size", strategy.shard_size);
    } else {
      flags.lacks("--shard-size: DeepSpeed divides over fewer ranks in stage 3 only (MiCS)");
    }
  }
  if (const double fraction = strategy.offload.optimizer.value; fraction > 0) {
    flags.add("zero_optimization.offload_optimizer.device", "cpu");
    const std::string share = fmt::format("{:g}", fraction);
    if (strategy.data_sharding == DataSharding::zero3) {
      flags.add("zero_optimization.offload_optimizer.ratio", share);
    } else if (fraction < 1) {
      flags.lacks("--optimizer-offload-fraction " + share + ": DeepSpeed sends a share in stage 3 alone");
    }
  }
  if (strategy.offload.parameters) flags.add("zero_optimization.offload_param.device", "cpu");
  flags.add("data_types.grad_accum_dtype",
            sums_in_bf16(strategy) ? "bf16" : name_of(strategy.gradient_dtype));
  if (strategy.optimizer != software.optimizer)
    flags.lacks("the optimizer: deepspeed.initialize(optimizer=...), in Python");
  if (strategy.tensor_parallel > 1) flags.add("tensor_parallel.autotp_size", strategy.tensor_parallel);
  if (strategy.pipeline_parallel > 1) {
    flags.lacks("pipeline stages: PipelineModule(num_stages=" + std::to_string(strategy.pipeline_parallel) +
                "), in Python");
  }
  if (strategy.pipeline_parallel > 1 && strategy.schedule != ScheduleKind::one_forward_one_backward)
    flags.lacks(schedule_lacks(strategy.schedule, "DeepSpeed's pipelines run 1F1B"));
  if (strategy.recompute.policy != RecomputePolicy::none)
    flags.lacks(
        "recomputation: deepspeed.checkpointing or the model's gradient_checkpointing_enable(), in Python");
  std::vector<std::string> offloaded = strategy.offload.modules;
  if (std::erase(offloaded, layer_input) > 0) flags.add("activation_checkpointing.cpu_checkpointing", "true");
  if (!offloaded.empty())
    flags.lacks("--offload-modules " + joined(offloaded, ",") + ": DeepSpeed sends inputs of layers alone");
  return flags.take();
}

// Of transformers' own names [training_args.py, OptimizerNames].
void add_optim(FlagList& flags, const Optimizer& optimizer, const Optimizer& usual) {
  if (optimizer == usual) return;
  Optimizer of_kind = usual;
  of_kind.kind = optimizer.kind;
  Optimizer of_8_bits = usual;
  of_8_bits.exp_avg = of_8_bits.exp_avg_sq = MomentDtype::int8;
  const bool named = optimizer.kind == OptimizerKind::adafactor || optimizer.kind == OptimizerKind::sgd;
  if (optimizer == of_8_bits) {
    flags.add("--optim", "adamw_bnb_8bit");
  } else if (optimizer == of_kind && named) {
    flags.add("--optim", name_of(optimizer.kind));
  } else {
    flags.lacks("the optimizer: Trainer(optimizers=...), in Python");
  }
}

LaunchFlags accelerate_flags(const Strategy& strategy, const Workload& workload, const Software& software) {
  FlagList flags(Launcher::accelerate);
  const std::int64_t ranks = replicas(strategy);
  flags.add("--num_processes", devices(strategy));
  if (strategy.data_sharding == DataSharding::zero3) {
    flags.on("--use_fsdp");
    flags.add("--fsdp_version", 2);
    flags.add("--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    flags.add("--fsdp_reshard_after_forward", strategy.no_reshard_after_forward ? "false" : "true");
    if (strategy.offload.parameters) flags.add("--fsdp_offload_params", "true");
    if (!sums_in_bf16(strategy))
      flags.lacks("--gradient-dtype " + std::string(name_of(strategy.gradient_dtype)) +
                  ": accelerate reduces in the dtype of mixed precision");
    if (strategy.shard_size > 0 && strategy.shard_size < ranks) {
      flags.add("--use_parallelism_config", "true");
      flags.add("--parallelism_config_dp_shard_size", strategy.shard_size);
      flags.add("--parallelism_config_dp_replicate_size", ranks / strategy.shard_size);
    }
  } else if (ranks > 1) {
    flags.on("--multi_gpu");
  }
  if (strategy.offload.optimizer.value > 0 && !strategy.offload.parameters)
    flags.lacks(fmt::format(
        "--optimizer-offload-fraction {:g} without --offload-parameters: FSDP sends both to the host",
        strategy.offload.optimizer.value));
  flags.add("--mixed_precision", "bf16");
  flags.add("--per_device_train_batch_size", strategy.micro_batch);
  flags.add("--gradient_accumulation_steps", microbatches(strategy, workload));
  if (strategy.sync_each_batch)
    flags.add("--accelerator_config", R"('{"gradient_accumulation_kwargs": {"sync_each_batch": true}}')");
  switch (strategy.recompute.policy) {
    case RecomputePolicy::none: break;
    case RecomputePolicy::full: flags.on("--gradient_checkpointing"); break;
    case RecomputePolicy::selective:
    case RecomputePolicy::selective_op:
    case RecomputePolicy::ops: flags.lacks("recomputation by module: transformers checkpoints layers"); break;
  }
  if (strategy.recompute.layers > 0)
    flags.lacks("--recompute-layers " + std::to_string(strategy.recompute.layers) +
                ": transformers checkpoints all layers");
  if (software.launches == Launches::compiled) flags.on("--torch_compile");
  add_optim(flags, strategy.optimizer, software.optimizer);
  if (strategy.lora.rank > 0) flags.lacks("LoRA: peft's LoraConfig(r, target_modules), in Python");
  return flags.take();
}

LaunchFlags flags_of(Launcher launcher, const Transformer& model, const Strategy& strategy,
                     const Workload& workload, const Software& software) {
  switch (launcher) {
    case Launcher::megatron_lm:
    case Launcher::megatron_bridge:
    case Launcher::zero_bubble: return megatron_flags(model, strategy, workload, software);
    case Launcher::torchtitan: return titan_flags(model, strategy, workload, software);
    case Launcher::deepspeed: return deepspeed_flags(strategy, workload, software);
    case Launcher::accelerate: return accelerate_flags(strategy, workload, software);
  }
  EXPECTS(!"unknown launcher");
  return {};
}

}  // namespace

std::optional<LaunchFlags> launch_flags(const Transformer& model, const Strategy& strategy,
                                        const Workload& workload, const Software& software) {
  if (!software.launcher) return std::nullopt;
  std::vector<std::string> untold;
  Strategy told = told_part(model, strategy, software, untold);
  const Asked asked{model, strategy, workload, software};
  for (const auto& [rule, problem] : broken_rules(asked, rules_of(Whose::launcher))) {
    untold.push_back(by_flag(problem).rule);
    rule->put_usual(told);
  }
  LaunchFlags flags = flags_of(*software.launcher, model, told, workload, software);
  flags.lacks.insert(flags.lacks.end(), untold.begin(), untold.end());
  return flags;
}

}  // namespace headroom

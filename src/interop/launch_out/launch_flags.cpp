#include "headroom/interop/launch_flags.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/parallel/launcher_fields.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "interop/launch_out/flag_list.hpp"
#include "interop/launch_out/megatron_flags.hpp"
#include "interop/launch_out/titan_flags.hpp"

namespace headroom {
namespace {

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
  // Pipelines reduce after their passes [runtime/engine.py:2401].
  if (software.overlap_grad_reduce && strategy.pipeline_parallel == 1)
    flags.add("zero_optimization.overlap_comm", "true");
  if (strategy.shard_size > 0 && strategy.shard_size < replicas(strategy)) {
    flags.add("zero_optimization.mics_shard_size", strategy.shard_size);
  }
  if (const double fraction = strategy.offload.optimizer.value; fraction > 0) {
    flags.add("zero_optimization.offload_optimizer.device", "cpu");
    if (strategy.data_sharding == DataSharding::zero3)
      flags.add("zero_optimization.offload_optimizer.ratio", fmt::format("{:g}", fraction));
  }
  if (strategy.offload.parameters) flags.add("zero_optimization.offload_param.device", "cpu");
  flags.add("data_types.grad_accum_dtype",
            sums_in_bf16(strategy) ? "bf16" : name_of(strategy.gradient_dtype));
  if (strategy.tensor_parallel > 1) flags.add("tensor_parallel.autotp_size", strategy.tensor_parallel);
  if (contains(strategy.offload.modules, layer_input))
    flags.add("activation_checkpointing.cpu_checkpointing", "true");
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
    if (strategy.shard_size > 0 && strategy.shard_size < ranks) {
      flags.add("--use_parallelism_config", "true");
      flags.add("--parallelism_config_dp_shard_size", strategy.shard_size);
      flags.add("--parallelism_config_dp_replicate_size", ranks / strategy.shard_size);
    }
  } else if (ranks > 1) {
    flags.on("--multi_gpu");
  }
  flags.add("--mixed_precision", "bf16");
  flags.add("--per_device_train_batch_size", strategy.micro_batch);
  flags.add("--gradient_accumulation_steps", microbatches(strategy, workload));
  if (strategy.sync_each_batch)
    flags.add("--accelerator_config", R"('{"gradient_accumulation_kwargs": {"sync_each_batch": true}}')");
  if (strategy.recompute.policy == RecomputePolicy::full) flags.on("--gradient_checkpointing");
  if (software.launches == Launches::compiled) flags.on("--torch_compile");
  add_optim(flags, strategy.optimizer, software.optimizer);
  if (strategy.lora.rank > 0) {
    flags.on("--use_peft");
    flags.add("--lora_r", strategy.lora.rank);
    if (!strategy.lora.targets.empty())
      flags.add("--lora_target_modules", joined(strategy.lora.targets, " "));
    if (strategy.lora.dropout.value > 0)
      flags.add("--lora_dropout", fmt::format("{:g}", strategy.lora.dropout.value));
    if (is_quantized(strategy.lora.base))
      flags.on(strategy.lora.base == BaseDtype::int8 ? "--load_in_8bit" : "--load_in_4bit");
    if (strategy.lora.base == BaseDtype::nf4_single) flags.add("--use_bnb_nested_quant", "false");
  }
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

ToldStrategy told_part(const Transformer& model, const Strategy& strategy, const Workload& workload,
                       const Software& software) {
  ToldStrategy told{.strategy = strategy, .lacks = {}};
  Strategy usual = with_stack_defaults({}, software, model);
  usual.data_sharding = least_sharding(software);
  Workload none;
  const Asked asked{model, strategy, workload, software};
  for (const auto& [rule, problem] : broken_rules(asked, rules_of(Whose::launcher))) {
    const StrategyField* const field = find_field(problem.where);
    told.lacks.push_back(by_flag(problem).rule);
    if (rule->put_usual != nullptr) {
      rule->put_usual(told.strategy);
    } else if (field != nullptr && !has_words(*software.launcher, field->name)) {
      set_value(*field, value_of(*field, usual, none), told.strategy, none);
    }
  }
  return told;
}

std::optional<LaunchFlags> launch_flags(const Transformer& model, const Strategy& strategy,
                                        const Workload& workload, const Software& software) {
  if (!software.launcher) return std::nullopt;
  ToldStrategy told = told_part(model, strategy, workload, software);
  LaunchFlags flags = flags_of(*software.launcher, model, told.strategy, workload, software);
  flags.lacks = std::move(told.lacks);
  return flags;
}

}  // namespace headroom

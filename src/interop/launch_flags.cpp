#include "headroom/interop/launch_flags.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "interop/megatron_flags.hpp"

namespace headroom {
namespace {

std::string schedule_lacks(ScheduleKind schedule, std::string_view what) {
  return "--schedule " + std::string(name_of(schedule)) + ": " + std::string(what);
}

// get_schedule_class takes these, of either case.
std::string_view pytorch_schedule(ScheduleKind schedule) {
  switch (schedule) {
    case ScheduleKind::gpipe: return "GPipe";
    case ScheduleKind::one_forward_one_backward: return "1F1B";
    case ScheduleKind::interleaved: return "Interleaved1F1B";
    case ScheduleKind::looped_bfs: return "LoopedBFS";
    case ScheduleKind::zero_bubble_v: return "ZBVZeroBubble";
    case ScheduleKind::dualpipe_v: return "DualPipeV";
    case ScheduleKind::zero_bubble_h1:
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::zero_bubble_2p:
    case ScheduleKind::v_half:
    case ScheduleKind::v_min:
    case ScheduleKind::dualpipe: break;
  }
  return {};
}

class Flags {
 public:
  explicit Flags(Launcher launcher) { result.launcher = launcher; }
  void add(std::string_view name, std::string_view value) {
    result.flags.push_back(std::string(name).append(" ").append(value));
  }
  void add(std::string_view name, std::int64_t value) { add(name, std::to_string(value)); }
  void on(std::string_view name) { result.flags.emplace_back(name); }
  void lacks(std::string what) { result.lacks.push_back(std::move(what)); }

  LaunchFlags result;
};

// What the launchers of Megatron-Core alone have.
void add_megatrons_own(Flags& flags, const Strategy& strategy) {
  if (strategy.overlap_expert_all_to_all) flags.lacks("--overlap-expert-all-to-all: it is Megatron-Core's");
  if (strategy.microbatch_group_size > strategy.pipeline_parallel)
    flags.lacks("--microbatch-group-size: it is Megatron-Core's");
}

// Stages as torchtitan cuts them: as many layers on each, but for those that the first and the last have less.
void add_titan_stages(Flags& flags, const Transformer& model, const Strategy& strategy) {
  const std::vector<std::int64_t> by_stage = layers_by_stage(model.layers, strategy);
  const std::int64_t most = *std::max_element(by_stage.begin(), by_stage.end());
  const bool says_all = std::all_of(by_stage.begin() + 1, by_stage.end() - 1,
                                    [&](std::int64_t layers) { return layers == most; });
  if (!says_all) {
    flags.lacks("uneven stages: list the modules of each (parallelism.module_fqns_per_model_part)");
    return;
  }
  flags.add("--parallelism.pipeline_parallel_layers_per_stage", most);
  flags.add("--parallelism.pipeline_parallel_first_stage_less_layers", most - by_stage.front());
  flags.add("--parallelism.pipeline_parallel_last_stage_less_layers", most - by_stage.back());
}

LaunchFlags titan_flags(const Transformer& model, const Strategy& strategy, const Workload& workload,
                        const Software& software) {
  Flags flags(Launcher::torchtitan);
  const std::int64_t ranks = strategy.data_parallel;
  const std::int64_t sharded =
      strategy.shard_size > 0 ? strategy.shard_size / strategy.context_parallel : ranks;
  if (sharded < 1 || ranks % sharded != 0) {
    flags.lacks("--shard-size: torchtitan's shards are over all context-parallel ranks");
  } else {
    flags.add("--parallelism.data_parallel_replicate_degree", ranks / sharded);
    flags.add("--parallelism.data_parallel_shard_degree", sharded);
  }
  flags.add("--parallelism.tensor_parallel_degree", strategy.tensor_parallel);
  if (strategy.tensor_parallel > 1 && !strategy.sequence_parallel)
    flags.lacks("no sequence parallelism: torchtitan's tensor parallelism of 2025 has it always");
  if (strategy.tensor_parallel > 1 && software.vocabulary.loss == LossParallel::gathered)
    flags.on("--parallelism.disable_loss_parallel");
  if (strategy.context_parallel > 1) {
    flags.add("--parallelism.context_parallel_degree", strategy.context_parallel);
    if (strategy.cp_comm == CpComm::all_gather) {
      flags.add("--parallelism.context_parallel_rotate_method", "allgather");
    } else if (strategy.cp_comm == CpComm::p2p) {
      flags.add("--parallelism.context_parallel_rotate_method", "alltoall");
    } else {
      flags.lacks("--cp-comm " + std::string(name_of(strategy.cp_comm)) +
                  ": torchtitan gathers keys and values or passes them round");
    }
  }
  if (any_experts(model)) {
    flags.add("--parallelism.expert_parallel_degree", strategy.expert_parallel);
    if (strategy.expert_tensor_parallel > 1)
      flags.add("--parallelism.expert_tensor_parallel_degree", strategy.expert_tensor_parallel);
    if (strategy.moe_dispatcher == Dispatcher::flex)
      flags.add("--parallelism.expert_parallel_comm_backend", "deepep");
    if (strategy.moe_dispatcher == Dispatcher::allgather)
      flags.lacks("--moe-dispatcher allgather: torchtitan sends tokens by all-to-all");
  }
  const std::int64_t n = microbatches(strategy, workload);
  if (strategy.pipeline_parallel > 1) {
    flags.add("--parallelism.pipeline_parallel_degree", strategy.pipeline_parallel);
    const std::string_view schedule = pytorch_schedule(strategy.schedule);
    if (schedule.empty()) {
      flags.lacks(schedule_lacks(strategy.schedule, "torch.distributed.pipelining has no such schedule"));
    } else {
      flags.add("--parallelism.pipeline_parallel_schedule", schedule);
    }
    add_titan_stages(flags, model, strategy);
    // A replica's batch is cut into the microbatches of a pipeline; without one, gradients of local batches are summed.
    flags.add("--parallelism.pipeline_parallel_microbatch_size", strategy.micro_batch);
    flags.add("--training.local_batch_size", strategy.micro_batch * n);
  } else {
    flags.add("--training.local_batch_size", strategy.micro_batch);
  }
  flags.add("--training.global_batch_size", workload.global_batch);
  flags.add("--training.seq_len", workload.sequence);
  if (strategy.data_sharding != DataSharding::zero3 && replicas(strategy) > 1)
    flags.lacks("--data-sharding " + std::string(name_of(strategy.data_sharding)) +
                ": torchtitan shards by FSDP2");
  if (strategy.data_sharding == DataSharding::zero3 && strategy.pipeline_parallel == 1)
    flags.add("--parallelism.fsdp_reshard_after_forward",
              strategy.no_reshard_after_forward ? "never" : "always");
  switch (strategy.recompute.policy) {
    case RecomputePolicy::none: flags.add("--activation_checkpoint.mode", "none"); break;
    case RecomputePolicy::full: flags.add("--activation_checkpoint.mode", "full"); break;
    case RecomputePolicy::selective_op:
      flags.add("--activation_checkpoint.mode", "selective");
      flags.add("--activation_checkpoint.selective_ac_option", "op");
      break;
    case RecomputePolicy::selective:
    case RecomputePolicy::ops:
      flags.lacks("recomputation by module: torchtitan checkpoints layers or by op");
      break;
  }
  if (strategy.recompute.layers > 0) flags.lacks("--recompute-layers: torchtitan checkpoints all layers");
  if (strategy.gradient_dtype == Dtype::half) flags.add("--training.mixed_precision_reduce", "bfloat16");
  if (strategy.precision != Precision::bf16)
    flags.lacks("--precision " + std::string(name_of(strategy.precision)) +
                ": a converter of the model (quantize.linear)");
  if (strategy.offload.parameters) flags.on("--training.enable_cpu_offload");
  if (software.overlap_tensor_parallel == TensorOverlap::full && strategy.tensor_parallel > 1)
    flags.on("--parallelism.enable_async_tensor_parallel");
  if (software.launches == Launches::compiled) flags.on("--compile.enable");
  add_megatrons_own(flags, strategy);
  return std::move(flags.result);
}

// Keys of its JSON file, a path each.
LaunchFlags deepspeed_flags(const Strategy& strategy, const Workload& workload, const Software& software) {
  Flags flags(Launcher::deepspeed);
  const std::int64_t n = microbatches(strategy, workload);
  flags.add("train_micro_batch_size_per_gpu", strategy.micro_batch);
  flags.add("gradient_accumulation_steps", n);
  flags.add("train_batch_size", workload.global_batch);
  flags.add("bf16.enabled", "true");
  flags.add("zero_optimization.stage", static_cast<std::int64_t>(strategy.data_sharding));
  if (software.overlap_grad_reduce) flags.add("zero_optimization.overlap_comm", "true");
  if (strategy.shard_size > 0 && strategy.shard_size < replicas(strategy)) {
    if (strategy.data_sharding == DataSharding::zero3) {
      flags.add("zero_optimization.mics_shard_size", strategy.shard_size);
    } else {
      flags.lacks("--shard-size: DeepSpeed divides over fewer ranks in stage 3 only (MiCS)");
    }
  }
  if (strategy.offload.optimizer.value > 0) {
    flags.add("zero_optimization.offload_optimizer.device", "cpu");
    flags.add("zero_optimization.offload_optimizer.ratio",
              fmt::format("{:g}", strategy.offload.optimizer.value));
  }
  if (strategy.offload.parameters) flags.add("zero_optimization.offload_param.device", "cpu");
  if (strategy.gradient_dtype == Dtype::half) flags.add("data_types.grad_accum_dtype", "bf16");
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
  if (contains(strategy.offload.modules, layer_input))
    flags.add("activation_checkpointing.cpu_checkpointing", "true");
  add_megatrons_own(flags, strategy);
  return std::move(flags.result);
}

LaunchFlags accelerate_flags(const Strategy& strategy, const Workload& workload, const Software& software) {
  Flags flags(Launcher::accelerate);
  const std::int64_t ranks = replicas(strategy);
  flags.add("--num_processes", devices(strategy));
  if (strategy.data_sharding == DataSharding::zero3) {
    flags.on("--use_fsdp");
    flags.add("--fsdp_version", 2);
    flags.add("--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    flags.add("--fsdp_reshard_after_forward", strategy.no_reshard_after_forward ? "false" : "true");
    if (strategy.offload.parameters) flags.add("--fsdp_offload_params", "true");
    if (strategy.shard_size > 0 && strategy.shard_size < ranks) {
      flags.add("--parallelism_config_dp_shard_size", strategy.shard_size);
      flags.add("--parallelism_config_dp_replicate_size", ranks / strategy.shard_size);
    }
  } else if (ranks > 1) {
    flags.on("--multi_gpu");
  }
  flags.add("--mixed_precision", "bf16");
  flags.add("--per_device_train_batch_size", strategy.micro_batch);
  flags.add("--gradient_accumulation_steps", microbatches(strategy, workload));
  switch (strategy.recompute.policy) {
    case RecomputePolicy::none: break;
    case RecomputePolicy::full: flags.on("--gradient_checkpointing"); break;
    case RecomputePolicy::selective:
    case RecomputePolicy::selective_op:
    case RecomputePolicy::ops: flags.lacks("recomputation by module: transformers checkpoints layers"); break;
  }
  if (strategy.recompute.layers > 0) flags.lacks("--recompute-layers: transformers checkpoints all layers");
  if (software.launches == Launches::compiled) flags.on("--torch_compile");
  if (strategy.lora.rank > 0) flags.lacks("LoRA: peft's LoraConfig(r, target_modules), in Python");
  add_megatrons_own(flags, strategy);
  return std::move(flags.result);
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
  LaunchFlags flags = flags_of(*software.launcher, model, strategy, workload, software);
  if (strategy.recompute.window) flags.lacks.emplace_back("--recompute-window: no launcher has it");
  return flags;
}

}  // namespace headroom

#include "interop/titan_flags.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "interop/launcher_flags.hpp"

namespace headroom {
namespace {

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

// Stages as torchtitan cuts them: as many layers on each, but for those that the first and the last have less.
void add_titan_stages(FlagList& flags, const Transformer& model, const Strategy& strategy) {
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

// Of all layers, or of every n-th of a rank [torchtitan/distributed/activation_checkpoint.py, _apply_ac_to_transformer_block], where some n
// makes it so many.
void add_checkpoints(FlagList& flags, const Transformer& model, const Strategy& strategy) {
  const std::int64_t layers = strategy.recompute.layers;
  const bool uniform = strategy.recompute.method == RecomputeMethod::uniform;
  if (layers == 0) {
    flags.add("--activation_checkpoint.mode", "full");
    return;
  }
  const std::vector<std::int64_t> by_stage = layers_by_stage(model.layers, strategy);
  const std::int64_t of_rank = by_stage.front();
  const bool alike = strategy.virtual_pipeline == 1 &&
                     std::count(by_stage.begin(), by_stage.end(), of_rank) == std::ssize(by_stage);
  const std::int64_t every = std::max<std::int64_t>(of_rank / layers, 1);
  if (uniform || !alike || of_rank / every != layers) {
    flags.lacks(
        fmt::format("--recompute-layers {}{}: torchtitan checkpoints all layers or every n-th "
                    "(activation_checkpoint.selective_ac_option)",
                    layers, uniform ? " --recompute-method uniform" : ""));
    return;
  }
  flags.add("--activation_checkpoint.mode", "selective");
  flags.add("--activation_checkpoint.selective_ac_option", every);
}

}  // namespace

LaunchFlags titan_flags(const Transformer& model, const Strategy& strategy, const Workload& workload,
                        const Software& software) {
  FlagList flags(Launcher::torchtitan);
  const std::int64_t ranks = strategy.data_parallel;
  const std::int64_t c = strategy.context_parallel;
  const std::int64_t sharded = strategy.shard_size > 0 ? strategy.shard_size / c : ranks;
  if (sharded < 1 || strategy.shard_size % c != 0 || ranks % sharded != 0) {
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
  if (c > 1) {
    flags.add("--parallelism.context_parallel_degree", c);
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
    const Dispatcher dispatcher = strategy.moe_dispatcher;
    if (dispatcher == Dispatcher::deepep) {
      flags.add("--parallelism.expert_parallel_comm_backend", "deepep");
    } else if (dispatcher != Dispatcher::alltoall) {
      flags.lacks("--moe-dispatcher " + std::string(name_of(dispatcher)) +
                  ": torchtitan sends tokens by all-to-all or DeepEP");
    }
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
    case RecomputePolicy::full: add_checkpoints(flags, model, strategy); break;
    case RecomputePolicy::selective_op:
      flags.add("--activation_checkpoint.mode", "selective");
      flags.add("--activation_checkpoint.selective_ac_option", "op");
      break;
    case RecomputePolicy::selective:
    case RecomputePolicy::ops:
      flags.lacks("recomputation by module: torchtitan checkpoints layers or by op");
      break;
  }
  if (strategy.gradient_dtype != Dtype::fp32)
    flags.lacks("--gradient-dtype " + std::string(name_of(strategy.gradient_dtype)) +
                ": --training.mixed_precision_reduce of 2025 takes float32 alone");
  if (strategy.precision != Precision::bf16)
    flags.lacks(precision_lacks(strategy.precision, "a converter of the model (quantize.linear)"));
  if (strategy.offload.parameters) {
    flags.on("--training.enable_cpu_offload");
  } else if (strategy.offload.optimizer.value > 0) {
    flags.lacks(fmt::format(
        "--optimizer-offload-fraction {:g} without --offload-parameters: torchtitan sends both to the host",
        strategy.offload.optimizer.value));
  }
  if (software.overlap_tensor_parallel == TensorOverlap::full && strategy.tensor_parallel > 1)
    flags.on("--parallelism.enable_async_tensor_parallel");
  if (software.launches == Launches::compiled) flags.on("--compile.enable");
  return flags.take();
}

}  // namespace headroom

#include "interop/launch_out/titan_flags.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "headroom/core/joined.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/titan_words.hpp"
#include "interop/launch_out/flag_list.hpp"

namespace headroom {
namespace {

// [["tok_embeddings","layers.0"],["layers.1","norm","output"]]: the modules of each stage, by name
// [torchtitan/config/job_config.py, module_fqns_per_model_part].
std::string modules_by_stage(const std::vector<std::int64_t>& by_stage) {
  std::string text;
  std::int64_t layer = 0;
  for (std::size_t stage = 0; stage < by_stage.size(); ++stage) {
    std::vector<std::string> modules;
    if (stage == 0) modules.emplace_back("\"tok_embeddings\"");
    for (std::int64_t i = 0; i < by_stage[stage]; ++i)
      modules.push_back("\"layers." + std::to_string(layer++) + "\"");
    if (stage + 1 == by_stage.size()) modules.insert(modules.end(), {"\"norm\"", "\"output\""});
    text += (stage == 0 ? "[[" : ",[") + joined(modules, ",") + "]";
  }
  return text + "]";
}

// Stages as torchtitan cuts them: as many layers on each, but for those that the first and the last have less; or named.
void add_titan_stages(FlagList& flags, const Transformer& model, const Strategy& strategy) {
  const std::vector<std::int64_t> by_stage = layers_by_stage(model.layers, strategy);
  const std::int64_t most = *std::max_element(by_stage.begin(), by_stage.end());
  const bool says_all = std::all_of(by_stage.begin() + 1, by_stage.end() - 1,
                                    [&](std::int64_t layers) { return layers == most; });
  if (!says_all) {
    flags.add("--parallelism.module_fqns_per_model_part", modules_by_stage(by_stage));
    return;
  }
  flags.add("--parallelism.pipeline_parallel_layers_per_stage", most);
  flags.add("--parallelism.pipeline_parallel_first_stage_less_layers", most - by_stage.front());
  flags.add("--parallelism.pipeline_parallel_last_stage_less_layers", most - by_stage.back());
}

void add_checkpoints(FlagList& flags, const Transformer& model, const Strategy& strategy) {
  if (strategy.recompute.layers == 0) {
    flags.add("--activation_checkpoint.mode", "full");
  } else if (const auto every = titan_checkpoint_step(model, strategy)) {
    flags.add("--activation_checkpoint.mode", "selective");
    flags.add("--activation_checkpoint.selective_ac_option", *every);
  }
}

}  // namespace

LaunchFlags titan_flags(const Transformer& model, const Strategy& strategy, const Workload& workload,
                        const Software& software) {
  FlagList flags(Launcher::torchtitan);
  const std::int64_t ranks = strategy.data_parallel;
  const std::int64_t c = strategy.context_parallel;
  const std::int64_t sharded = strategy.shard_size > 0 ? strategy.shard_size / c : ranks;
  flags.add("--parallelism.data_parallel_replicate_degree", ranks / sharded);
  flags.add("--parallelism.data_parallel_shard_degree", sharded);
  flags.add("--parallelism.tensor_parallel_degree", strategy.tensor_parallel);
  if (strategy.tensor_parallel > 1 && software.vocabulary.loss == LossParallel::gathered)
    flags.on("--parallelism.disable_loss_parallel");
  if (c > 1) {
    flags.add("--parallelism.context_parallel_degree", c);
    flags.add("--parallelism.context_parallel_rotate_method",
              strategy.cp_comm == CpComm::all_gather ? "allgather" : "alltoall");
  }
  if (any_experts(model)) {
    flags.add("--parallelism.expert_parallel_degree", strategy.expert_parallel);
    if (strategy.expert_tensor_parallel > 1)
      flags.add("--parallelism.expert_tensor_parallel_degree", strategy.expert_tensor_parallel);
    if (strategy.moe_dispatcher == Dispatcher::deepep)
      flags.add("--parallelism.expert_parallel_comm_backend", "deepep");
  }
  const std::int64_t n = microbatches(strategy, workload);
  if (strategy.pipeline_parallel > 1) {
    flags.add("--parallelism.pipeline_parallel_degree", strategy.pipeline_parallel);
    flags.add("--parallelism.pipeline_parallel_schedule", pytorch_schedule(strategy.schedule));
    add_titan_stages(flags, model, strategy);
    // A replica's batch is cut into the microbatches of a pipeline; without one, gradients of local batches are summed.
    flags.add("--parallelism.pipeline_parallel_microbatch_size", strategy.micro_batch);
    flags.add("--training.local_batch_size", strategy.micro_batch * n);
  } else {
    flags.add("--training.local_batch_size", strategy.micro_batch);
  }
  flags.add("--training.global_batch_size", workload.global_batch);
  flags.add("--training.seq_len", workload.sequence);
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
    case RecomputePolicy::ops: break;
  }
  if (strategy.precision == Precision::fp8) {
    flags.add("--model.converters", "quantize.linear.float8");
    flags.on("--quantize.linear.float8.enable_fsdp_float8_all_gather");
  } else if (strategy.precision == Precision::mxfp8) {
    flags.add("--model.converters", "quantize.linear.mx");
    flags.add("--quantize.linear.mx.recipe_name", "mxfp8_cublas");
  }
  if (strategy.step_in_backward) flags.on("--optimizer.early_step_in_backward");
  if (strategy.offload.parameters) flags.on("--training.enable_cpu_offload");
  if (software.overlap_tensor_parallel == TensorOverlap::full && strategy.tensor_parallel > 1)
    flags.on("--parallelism.enable_async_tensor_parallel");
  // Asynchronous tensor parallelism is code that the compiler writes [torchtitan v0.2.2, distributed/tensor_parallel.py:21].
  if (software.launches == Launches::compiled) flags.on("--compile.enable");
  return flags.take();
}

}  // namespace headroom

// Defaults of a training stack for a strategy: optimizer state, dtype of gradients, outputs of stages,
// schedule, and data sharding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "headroom/hardware/software.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/edits.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {

// Returns the strategy with the stack's optimizer and gradient dtype. Also keeps pipeline outputs if the
// stack's stages keep them, and pads experts to capacity if the stack routes by masks, all experts have a
// capacity factor and the dispatcher is alltoall. Autocast keeps a model's weights in fp32
// (`kernels.weight_copies`); then gradients and main parameters are fp32 on any stack.
inline Strategy with_stack_defaults(Strategy strategy, const Software& software, const Transformer& model) {
  strategy.optimizer = software.optimizer;
  strategy.gradient_dtype = software.gradient_dtype;
  if (software.memory.keeps_outputs) strategy.keep_pipeline_outputs = true;
  if (routes_by_masks(software) && has_capacities(model) && strategy.moe_dispatcher == Dispatcher::alltoall)
    strategy.moe_pad_to_capacity = true;
  if (model.architecture.kernels.weight_copies) {
    strategy.optimizer.main_params = MainParams::fp32;
    strategy.gradient_dtype = Dtype::fp32;
  }
  return strategy;
}

// Returns the default data sharding: the least that the stack has.
inline DataSharding least_sharding(const Software& software) {
  const std::vector<DataSharding>& modes = software.sharding.modes;
  return modes.empty() ? DataSharding::none : *std::min_element(modes.begin(), modes.end());
}

// Returns whether the optimizer runs only sharded. Megatron-Core keeps moments or main parameters below 32
// bits only in its distributed optimizer, even on one rank [Megatron-LM, core/optimizer/__init__.py].
inline bool needs_sharded_optimizer(const Software& software, const Strategy& strategy) {
  const bool on_megatron =
      software.launcher == Launcher::megatron_lm || software.launcher == Launcher::megatron_bridge;
  const Optimizer& optimizer = strategy.optimizer;
  return on_megatron && !keeps_fp32(optimizer) && !has_int8(optimizer) &&
         optimizer.main_params != MainParams::none;
}

// Returns the default data sharding of a strategy: the least that the stack has and its optimizer runs with.
inline DataSharding least_sharding(const Software& software, const Strategy& strategy) {
  const std::vector<DataSharding>& modes = software.sharding.modes;
  const bool shards = needs_sharded_optimizer(software, strategy) &&
                      std::find(modes.begin(), modes.end(), DataSharding::zero1) != modes.end();
  return shards ? DataSharding::zero1 : least_sharding(software);
}

// Returns the default data sharding of a rank whose weights no other rank holds.
inline DataSharding sharding_of_one(const Software& software, const Strategy& strategy) {
  const bool alone = strategy.tensor_parallel == 1 && software.sharding.plain_alone;
  return alone ? DataSharding::none : least_sharding(software, strategy);
}

// Returns the data sharding of a strategy for which none was named: its own if the stack has it and its
// optimizer runs with it.
inline DataSharding default_sharding(const Software& software, const Strategy& strategy) {
  const std::vector<DataSharding>& modes = software.sharding.modes;
  const bool runs =
      strategy.data_sharding != DataSharding::none || !needs_sharded_optimizer(software, strategy);
  if (runs && std::find(modes.begin(), modes.end(), strategy.data_sharding) != modes.end())
    return strategy.data_sharding;
  return replicas(strategy) == 1 ? sharding_of_one(software, strategy) : least_sharding(software, strategy);
}

// Returns the default schedule: 1F1B, or interleaved 1F1B with virtual stages. If the stack lacks it, returns
// the first of the stack's schedules that runs this number of virtual stages. If none does, the rules refuse
// the strategy.
inline ScheduleKind default_schedule(const Software& software, std::int64_t virtual_pipeline) {
  const ScheduleKind usual = implied_schedule(virtual_pipeline);
  const std::vector<ScheduleKind>& offered = software.schedules;
  if (offered.empty() || std::find(offered.begin(), offered.end(), usual) != offered.end()) return usual;
  const auto first = std::find_if(offered.begin(), offered.end(), [&](ScheduleKind kind) {
    return admits_virtual_pipeline(kind, virtual_pipeline);
  });
  return first == offered.end() ? usual : *first;
}

// Returns the default main parameters: the stack's. For Adam with BF16, FP16 or FP8 moments, Megatron-Core
// takes its precision-aware optimizer, which keeps the low 16 bits of main parameters beside BF16 weights. It
// keeps whole FP32 main parameters beside FP8 weights and with an offloaded optimizer [Megatron-LM,
// core/optimizer/optimizer_config.py, store_param_remainders].
inline MainParams default_main_params(const Strategy& strategy, const Software& software,
                                      const Transformer& model) {
  if (model.architecture.kernels.weight_copies) return MainParams::fp32;
  const MainParams own = software.optimizer.main_params;
  const bool on_megatron =
      software.launcher == Launcher::megatron_lm || software.launcher == Launcher::megatron_bridge;
  const Optimizer& optimizer = strategy.optimizer;
  const bool is_aware = on_megatron && optimizer.kind == OptimizerKind::adam && !has_int8(optimizer) &&
                        (optimizer.exp_avg != MomentDtype::fp32 || optimizer.exp_avg_sq != MomentDtype::fp32);
  const bool keeps_all = strategy.fp8_param_gather || strategy.offload.optimizer.value > 0;
  return own == MainParams::fp32 && is_aware && !keeps_all ? MainParams::remainder : own;
}

// Sets the default schedule of a pipeline for which none was named.
inline void use_default_schedule(Strategy& strategy, const Software& software) {
  if (strategy.pipeline_parallel > 1 && strategy.schedule == implied_schedule(strategy.virtual_pipeline))
    strategy.schedule = default_schedule(software, strategy.virtual_pipeline);
}

// Returns the global batch of a strategy for which none was named. Four microbatches on each pipeline keep the
// bubble of 1F1B below a quarter of the iteration.
inline std::int64_t default_global_batch(const Strategy& strategy) {
  return 4 * strategy.pipeline_parallel * strategy.micro_batch * strategy.data_parallel;
}

// Returns the edits that turn a stack's defaults into a strategy. A command that names model and stack needs
// no flags for the defaults.
inline Edits edits_of(const Strategy& strategy, const Software& software, const Transformer& model) {
  Strategy usual = with_stack_defaults({}, software, model);
  usual.optimizer.main_params = default_main_params(strategy, software, model);
  return edits_of(strategy, usual);
}

}  // namespace headroom

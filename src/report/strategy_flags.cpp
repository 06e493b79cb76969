#include "report/strategy_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headroom {

std::string strategy_flags(const Strategy& strategy) {
  std::string flags = fmt::format("-t {} -p {}", strategy.tensor_parallel, strategy.pipeline_parallel);
  if (strategy.virtual_pipeline > 1) flags += fmt::format(" -m {}", strategy.virtual_pipeline);
  flags += fmt::format(" -d {} -b {}", strategy.data_parallel, strategy.micro_batch);
  if (strategy.schedule == ScheduleKind::gpipe) flags += " --schedule gpipe";
  if (!strategy.stage_layers.empty())
    flags += fmt::format(" --stage-layers {}", fmt::join(strategy.stage_layers, ","));
  if (strategy.sequence_parallel) flags += " --sp";
  const Recomputation& recompute = strategy.recompute;
  if (recompute.policy == RecomputePolicy::ops) {
    flags += fmt::format(" --recompute-ops {}", fmt::join(recompute.ops, ","));
  } else if (recompute.policy != RecomputePolicy::none) {
    flags += fmt::format(" --recompute {}", name_of(recompute.policy));
  }
  if (recompute.layers > 0) flags += fmt::format(" --recompute-layers {}", recompute.layers);
  if (recompute.method != RecomputeMethod::block)
    flags += fmt::format(" --recompute-method {}", name_of(recompute.method));
  if (recompute.window) flags += " --recompute-window";
  if (recompute.shard_checkpoint) flags += " --shard-checkpoint";
  if (!strategy.regather) flags += " --store-gathered";
  if (!strategy.deallocate_outputs) flags += " --keep-outputs";
  if (strategy.distributed_optimizer) flags += " --distributed-optimizer";
  if (strategy.gradients != Dtype::fp32) flags += fmt::format(" --gradients {}", name_of(strategy.gradients));
  return flags;
}

}  // namespace headroom

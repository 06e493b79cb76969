#include "headroom/search/sharding_choices.hpp"

#include <algorithm>

#include "headroom/core/contains.hpp"
#include "headroom/parallel/optimizer_legality.hpp"
#include "headroom/parallel/stack_legality.hpp"
#include "headroom/search/space.hpp"

namespace headroom {
namespace {

// Returns the space's shard sizes that divide the ranks with the same weights, and those with the same
// experts.
std::vector<std::int64_t> shard_sizes(const Request& base, const Space& space, const Strategy& layout) {
  if (space.shard_size == Counts{}) return {0};
  const AxisSizes sizes = axis_sizes(layout);
  const std::int64_t alike = replicas(layout);
  std::vector<std::int64_t> result = allowed_divisors(alike, space.shard_size);
  if (any_experts(base.model)) {
    const std::int64_t of_experts = replicas(sizes, WeightClass::expert);
    std::erase_if(result, [&](std::int64_t size) { return of_experts % (alike / size) != 0; });
  }
  return result;
}

}  // namespace

std::vector<ShardingChoice> sharding_choices(const Request& base, const Space& space,
                                             const Strategy& layout) {
  if (replicas(layout) == 1) return {{.data_sharding = sharding_of_one(base.software, layout)}};
  const StackSharding& has = base.software.sharding;
  const bool keeps_copies = base.model.architecture.kernels.weight_copies;
  const std::vector<std::int64_t> sizes = shard_sizes(base, space, layout);
  // With one microbatch nothing accumulates, so the switch changes nothing.
  const bool may_sync =
      has.sync_each_batch && layout.pipeline_parallel == 1 && microbatches(layout, base.workload) > 1;
  std::vector<ShardingChoice> choices;
  for (const DataSharding sharding :
       {DataSharding::zero3, DataSharding::zero2, DataSharding::zero1, DataSharding::none}) {
    const bool gradients = sharding >= DataSharding::zero2;
    const bool weights = sharding == DataSharding::zero3;
    const bool through_pipeline = layout.pipeline_parallel == 1 || (weights && has.with_pipeline);
    const bool wanted = space.data_sharding.empty() || contains(space.data_sharding, sharding);
    if (!wanted || !contains(has.modes, sharding)) continue;
    if (space.data_sharding.empty() && !steps_with(base.strategy.optimizer.kind, sharding)) continue;
    const bool apart = layout.pipeline_parallel == 1 && has_weight_passes(layout.schedule);
    if (gradients && (!through_pipeline || keeps_copies || apart)) continue;
    if (sharding == DataSharding::none) {
      choices.push_back({});
      continue;
    }
    for (const std::int64_t size : sizes) {
      const bool in_passes = weights && layout.pipeline_parallel == 1;
      for (const bool keeps : in_passes ? space.no_reshard_after_forward : std::vector{false}) {
        for (const bool syncs : gradients&& may_sync ? space.sync_each_batch : std::vector{false})
          choices.push_back({sharding, size, keeps, syncs});
      }
    }
  }
  if (layout.fp8_param_gather && !trains_adapters(layout.lora) && choices.size() > 1)
    std::erase(choices, ShardingChoice{});
  return choices;
}

}  // namespace headroom

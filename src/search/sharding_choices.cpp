#include "headroom/search/sharding_choices.hpp"

#include <algorithm>

#include "headroom/core/contains.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/search/space.hpp"

namespace headroom {
std::vector<ShardingChoice> sharding_candidates(const Request& base, const Space& space,
                                                const Strategy& layout) {
  if (replicas(layout) == 1) return {{.data_sharding = sharding_of_one(base.software, layout)}};
  const std::vector<std::int64_t> sizes = space.shard_size == Counts{}
                                              ? std::vector<std::int64_t>{0}
                                              : allowed_divisors(replicas(layout), space.shard_size);
  const bool one_rank = layout.pipeline_parallel == 1;
  // With one microbatch nothing accumulates, so the switch changes nothing.
  const bool may_sync = one_rank && microbatches(layout, base.workload) > 1;
  std::vector<ShardingChoice> candidates;
  for (const DataSharding sharding :
       {DataSharding::zero3, DataSharding::zero2, DataSharding::zero1, DataSharding::none}) {
    const bool wanted = space.data_sharding.empty() || contains(space.data_sharding, sharding);
    if (!wanted || !contains(base.software.sharding.modes, sharding)) continue;
    if (sharding == DataSharding::none) {
      candidates.push_back({});
      continue;
    }
    const bool in_passes = sharding == DataSharding::zero3 && one_rank;
    for (const std::int64_t size : sizes) {
      for (const bool keeps : in_passes ? space.no_reshard_after_forward : std::vector{false}) {
        for (const bool syncs :
             may_sync&& sharding >= DataSharding::zero2 ? space.sync_each_batch : std::vector{false})
          candidates.push_back({sharding, size, keeps, syncs});
      }
    }
  }
  return candidates;
}

std::vector<ShardingChoice> sharding_choices(const Request& base, const Space& space,
                                             const Strategy& layout) {
  std::vector<ShardingChoice> choices = sharding_candidates(base, space, layout);
  Strategy strategy = layout;
  std::erase_if(choices, [&](const ShardingChoice& choice) {
    set_sharding(strategy, choice);
    return !holds(asked(base, strategy), searched_rules(Reads::sharding));
  });
  return choices;
}

}  // namespace headroom

#include "headroom/search/sharding_choices.hpp"

#include <algorithm>

#include "headroom/core/contains.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/search/space.hpp"

namespace headroom {
std::vector<ShardingChoice> sharding_candidates(const Request& base, const Space& space,
                                                const Strategy& layout) {
  if (replicas(layout) == 1) {
    // Nothing is sharded, whatever is asked for; but an optimizer that runs sharded only is refused without.
    const bool refused = space.data_sharding == std::vector{DataSharding::none} &&
                         needs_sharded_optimizer(base.software, layout);
    return {{.data_sharding = refused ? DataSharding::none : sharding_of_one(base.software, layout)}};
  }
  const bool open = space.shard_size == Counts{};
  std::vector<std::int64_t> sizes{0};
  if (!open || tries(base, space, WideChoice::shard_size)) {
    sizes = allowed_divisors(replicas(layout), space.shard_size);
    if (open) {  // a group of all ranks is written as 0, and a group of one shards nothing
      std::erase_if(sizes, [&](std::int64_t size) { return size == 1 || size == replicas(layout); });
      sizes.insert(sizes.begin(), 0);
    }
  }
  std::vector<bool> keeps_gathered = space.no_reshard_after_forward;
  if (keeps_gathered.empty()) {
    keeps_gathered = {false};
    if (tries(base, space, WideChoice::no_reshard_after_forward)) keeps_gathered.push_back(true);
  }
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
      for (const bool keeps : in_passes ? keeps_gathered : std::vector{false}) {
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

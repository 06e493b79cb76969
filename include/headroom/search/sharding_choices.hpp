// Data-sharding choices of a layout: what ranks with the same weights may shard.
#pragma once

#include <vector>

#include "headroom/parallel/data_shards.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

struct Space;

// Returns the data-sharding choices of a layout: those that the stack has and, unless modes were asked for,
// that work with the optimizer. Choices that do not change the passes follow each other. Weights of fewer
// than 16 bits need at least sharded optimizer state.
std::vector<ShardingChoice> sharding_choices(const Request& base, const Space& space, const Strategy& layout);

}  // namespace headroom

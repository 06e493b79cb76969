// Data-sharding choices of a layout: what ranks with the same weights may shard.
#pragma once

#include <vector>

#include "headroom/parallel/data_shards.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

struct Space;

// Returns the data-sharding choices that the space leaves open, the stack has and the ranks of the layout
// could use. Choices that do not change the passes follow each other.
std::vector<ShardingChoice> sharding_candidates(const Request& base, const Space& space,
                                                const Strategy& layout);

// Returns the legal candidates.
std::vector<ShardingChoice> sharding_choices(const Request& base, const Space& space, const Strategy& layout);

}  // namespace headroom

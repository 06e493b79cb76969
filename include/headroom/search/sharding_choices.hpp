// What the ranks of a layout that hold the same weights may divide between them.
#pragma once

#include <vector>

#include "headroom/parallel/data_shards.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

struct Space;

// What the ranks of a layout may divide, of what the stack has and, unless modes were asked for, the optimizer goes with;
// those that leave passes as they are follow each other. The optimizer's state at the least where weights are kept in fewer
// than 16 bits.
std::vector<ShardingChoice> sharding_choices(const Request& base, const Space& space, const Strategy& layout);

}  // namespace headroom

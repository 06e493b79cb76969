// Inverse questions whose answers leave room for what PyTorch's allocator reserves (plan/allocator_use.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "headroom/search/find.hpp"

namespace headroom {

// Returns what find() does, for values at which some strategy fits by what the allocator reserves. Follows
// only the layout whose tensors take least: another one, whose blocks leave smaller gaps, may fit a longer
// sequence, a larger batch or a deeper model. Is exact to 1/64 of what the allocator takes from the answer
// of find(). A value of a search that the watch stops may not have been looked at by what the allocator
// reserves. Looks at TP within a node first. If nothing fits and the space is wide, looks at wider TP too.
Found find_held(const Request& base, const Space& space, const Question& question,
                std::span<const std::int64_t> global_batches, const Watch& watch = {});
Found find_held(const Request& base, const Space& space, const Question& question, const Watch& watch = {});

}  // namespace headroom

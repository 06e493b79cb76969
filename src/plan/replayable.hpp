// Which ranks of a plan the replay of an allocator can follow (plan/allocator_use.hpp).
#pragma once

#include <string_view>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Returns why the order of a plan's tensors is not modelled, or its size is beyond a replay: the rest of the
// sentence "PyTorch's allocator is not followed, because ...". Empty if the rank can be replayed.
std::string_view unreplayed(const Plan& plan, const RankMemory& memory);

// Of a rank with too many passes.
inline constexpr std::string_view too_many_passes = "the iteration has too many passes";

}  // namespace headroom

// Which ranks of a plan the replay of an allocator can follow (plan/allocator_use.hpp).
#pragma once

#include <string_view>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Returns why the order of a plan's tensors is not modelled, or its size is beyond a replay: the rest of the
// sentence "Headroom does not model PyTorch's allocator for this plan, because ...". Empty if the rank can be
// replayed.
std::string_view unreplayed(const Plan& plan, const RankMemory& memory);

// Reason for a rank with too many passes.
inline constexpr std::string_view too_many_passes = "the iteration has too many passes";

}  // namespace headroom

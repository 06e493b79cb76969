// Recomputation policies: one that a strategy chooses, among those that a training stack offers.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// Ops that a backward pass recomputes.
// none: nothing; all activations are saved.
// selective: core attention [K22 section 5].
// full: whole layers; only a layer's input is saved.
// ops: the named ops, none of whose outputs are saved.
// selective_op: torchtitan's selection of ops (parallel/selective_ops.hpp).
enum class RecomputePolicy : std::uint8_t { none, selective, full, ops, selective_op };

template <>
inline constexpr std::array<Spelling<RecomputePolicy>, 5> spellings<RecomputePolicy>{{
    {RecomputePolicy::none, "none"},
    {RecomputePolicy::selective, "selective"},
    {RecomputePolicy::full, "full"},
    {RecomputePolicy::ops, "ops"},
    {RecomputePolicy::selective_op, "selective_op"},
}};
template <>
inline constexpr std::array<Spelling<RecomputePolicy>, 2> other_spellings<RecomputePolicy>{{
    {RecomputePolicy::selective_op, "selective-op"},
    {RecomputePolicy::selective_op, "SelectiveAC"},
}};

}  // namespace headroom

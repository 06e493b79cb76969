// What is computed again in a backward pass: of a strategy, and of those that a training stack has.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// none: keep everything. selective: recompute core attention [K22 section 5]. full: keep a layer's input and recompute
// the layer. ops: recompute the named ops and drop all that they make. selective_op: torchtitan's (parallel/selective_ops.hpp).
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

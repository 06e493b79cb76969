// What data-parallel ranks, which hold the same weights, divide among them. A training stack has some of these ways
// (hardware/software.hpp), and a strategy takes one (parallel/strategy.hpp).
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// none: nothing. zero1: the optimizer's state [Megatron-LM's distributed optimizer; ZeRO, arXiv:1910.02054, section 5].
enum class DataSharding : std::uint8_t { none, zero1 };

template <>
inline constexpr std::array<Spelling<DataSharding>, 2> spellings<DataSharding>{{
    {DataSharding::none, "none"},
    {DataSharding::zero1, "zero1"},
}};
// Stages by their numbers, and what was a truth value: a distributed optimizer or none.
template <>
inline constexpr std::array<Spelling<DataSharding>, 7> other_spellings<DataSharding>{{
    {DataSharding::none, "0"},
    {DataSharding::none, "zero0"},
    {DataSharding::none, "no"},
    {DataSharding::zero1, "1"},
    {DataSharding::zero1, "zero-1"},
    {DataSharding::zero1, "yes"},
    {DataSharding::zero1, "true"},
}};

}  // namespace headroom

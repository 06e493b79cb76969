// Tensors that data-parallel ranks divide among themselves (ZeRO stages). A training stack offers some modes
// (hardware/software.hpp); a strategy picks one (parallel/strategy.hpp).
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// Stages of ZeRO:
// none: nothing is divided. zero1: optimizer state [Megatron-LM's distributed optimizer]. zero2: gradients
// too.
// zero3: weights too. Ranks gather them unit by unit when a pass needs them [FSDP; arXiv:1910.02054, section
// 5, and arXiv:2304.11277].
enum class DataSharding : std::uint8_t { none, zero1, zero2, zero3 };

template <>
inline constexpr std::array<Spelling<DataSharding>, 4> spellings<DataSharding>{{
    {DataSharding::none, "none"},
    {DataSharding::zero1, "zero1"},
    {DataSharding::zero2, "zero2"},
    {DataSharding::zero3, "zero3"},
}};
// Other spellings: stage numbers, yes and no for a distributed optimizer, and the names of Megatron-FSDP
// [--data-parallel-sharding-strategy] and of PyTorch's FSDP.
template <>
inline constexpr std::array<Spelling<DataSharding>, 14> other_spellings<DataSharding>{{
    {DataSharding::none, "0"},
    {DataSharding::none, "no"},
    {DataSharding::none, "false"},
    {DataSharding::none, "no_shard"},
    {DataSharding::none, "NO_SHARD"},
    {DataSharding::zero1, "1"},
    {DataSharding::zero1, "yes"},
    {DataSharding::zero1, "true"},
    {DataSharding::zero1, "optim"},
    {DataSharding::zero2, "2"},
    {DataSharding::zero2, "optim_grads"},
    {DataSharding::zero3, "3"},
    {DataSharding::zero3, "optim_grads_params"},
    {DataSharding::zero3, "FULL_SHARD"},
}};

}  // namespace headroom

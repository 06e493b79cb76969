// Tells from a message why a run went out of memory, and what mends it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/interop/oom_message.hpp"

namespace headroom {

// fragmentation: the GPU has enough free memory, but not in one piece. limit: the process reached the limit
// that it set itself. other_processes: enough memory is in other processes. excess: the run needs more than
// there is. outside: the memory that ran out is not of PyTorch's allocator. host: it is the host's.
enum class OomCause : std::uint8_t { fragmentation, limit, other_processes, excess, outside, host };

struct OomReply {
  OomMessage message;
  OomCause cause = OomCause::excess;
  std::optional<Bytes> non_torch;  // of this process: CUDA context, NCCL buffers
  std::optional<Bytes> others;     // of other processes, at least
  // excess: what is missing for this tensor alone. Later tensors may need more.
  std::optional<Bytes> missing;
  std::vector<std::string> remedies;  // most effective first
};

// Returns the cause. A tensor fits if what is free on the GPU and what PyTorch holds unallocated are at least
// its size: before it fails, PyTorch returns the blocks that it can.
OomReply diagnosed(const OomMessage& message);

template <>
inline constexpr std::array<Spelling<OomCause>, 6> spellings<OomCause>{{
    {OomCause::fragmentation, "fragmentation"},
    {OomCause::limit, "limit"},
    {OomCause::other_processes, "other_processes"},
    {OomCause::excess, "excess"},
    {OomCause::outside, "outside"},
    {OomCause::host, "host"},
}};
template <>
inline constexpr std::array<Spelling<OutOf>, 6> spellings<OutOf>{{
    {OutOf::torch, "torch"},
    {OutOf::driver, "driver"},
    {OutOf::nccl, "nccl"},
    {OutOf::cublas, "cublas"},
    {OutOf::xla, "xla"},
    {OutOf::host, "host"},
}};

}  // namespace headroom

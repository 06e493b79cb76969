// What PyTorch's caching allocator holds on a rank, which its logs print as reserved memory: the tensors of some iterations, in the
// order of the rank's schedule, served one by one (memory/pass_events.hpp, memory/caching_allocator.hpp). It is more than what
// tensors take at once: of a block that was freed a larger tensor has no use, and what one stream freed another one has none of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Returns what the allocator reserves on a pipeline rank, or nothing where the order of tensors is not followed: passes for weights of
// their own, windows of recomputation, checkpoints of several layers, outputs that a pipeline keeps, and offloading; nor of plans
// that need 100 times what a device has, nor of so many passes that it would take seconds (GPipe of thousands of microbatches).
//
// Weights and gradients are allocated first, the state of the optimizer when it first steps. Gathered weights come to a stream of
// their own and are copied from there where the stack copies units; shards of gradients are reduced to on a third [PyTorch,
// torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather and foreach_reduce], and are freed before the next
// iteration (zero_grad).
std::optional<AllocatorUse> allocator_use(const Plan& plan, std::int64_t rank);

// Returns its `reserved` alone, in half the time.
std::optional<Bytes> reserved_bytes(const Plan& plan, std::int64_t rank);

// Memory of a device of a pipeline rank as nvidia-smi shows it: reserved and non-torch memory.
struct DeviceUse {
  std::size_t rank = 0;
  Bytes bytes;
  friend bool operator==(const DeviceUse&, const DeviceUse&) = default;
};

// Returns the fullest device. A rank is not followed where one that was takes at least as much in each of memory_parts.
std::optional<DeviceUse> fullest_device(const Plan& plan);

// Returns what that device holds, of a plan that settled() has filled in.
std::optional<Bytes> held_bytes(const Plan& plan);

// Returns the evaluation with the verdict of its fullest device. More than the device has is marginal where freeing cached segments
// or segments that grow keep it within, and does not fit otherwise.
Evaluation settled(Evaluation evaluation);

}  // namespace headroom

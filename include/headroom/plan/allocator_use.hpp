// Memory that PyTorch's caching allocator holds on a rank; PyTorch's logs call it reserved memory. The
// tensors of some iterations are allocated one by one, in the order of the rank's schedule
// (memory/pass_events.hpp, memory/caching_allocator.hpp). Reserved memory exceeds what tensors take at once:
// a larger tensor cannot use a freed block, and one stream cannot use what another freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Returns what the allocator reserves on a pipeline rank. Returns nothing where the order of tensors is not
// modelled: separate weight-gradient passes, recomputation windows, checkpoints of several layers, saved
// pipeline outputs and offloading. Also returns nothing for plans that need 100 times a GPU's memory, and for
// so many passes that the replay would take seconds (GPipe with thousands of microbatches).
//
// Weights and gradients are allocated first, the optimizer state at the first optimizer step. Gathered
// weights arrive on a stream of their own, and are copied from there where the stack copies units. Gradient
// shards are reduced on a third stream [PyTorch, torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py,
// foreach_all_gather and foreach_reduce], and are freed before the next iteration (zero_grad).
std::optional<AllocatorUse> allocator_use(const Plan& plan, std::int64_t rank);

// Returns only AllocatorUse::reserved, in half the time.
std::optional<Bytes> reserved_bytes(const Plan& plan, std::int64_t rank);

// Memory of a pipeline rank's GPU as nvidia-smi shows it: reserved plus non-torch memory.
struct DeviceUse {
  std::size_t rank = 0;
  Bytes bytes;
  friend bool operator==(const DeviceUse&, const DeviceUse&) = default;
};

// Returns the GPU that holds the most. Skips a rank if a rank already replayed takes at least as much in each
// of memory_parts.
std::optional<DeviceUse> fullest_device(const Plan& plan);

// Returns the bytes that the fullest GPU holds. Expects a plan that settled() has filled in.
std::optional<Bytes> held_bytes(const Plan& plan);

// Returns the evaluation with the verdict of its fullest GPU. A plan that exceeds the GPU's memory is
// marginal if freeing cached segments or expandable segments keep the plan within it; otherwise the plan does
// not fit.
Evaluation settled(Evaluation evaluation);

// What settled() finds out, without the AllocatorUse of a plan that is not shown.
struct Settling {
  std::optional<DeviceUse> fullest;
  Verdict verdict = Verdict::fits;
};
Settling settling(const Evaluation& evaluation);

// Returns only the verdict. Follows no allocator if the tensors do not fit.
Verdict settled_verdict(const Evaluation& evaluation);

}  // namespace headroom

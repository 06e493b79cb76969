// What PyTorch's caching allocator holds on a rank, which its logs print as reserved memory: the tensors of some iterations, in the
// order of the rank's schedule, served one by one (memory/pass_events.hpp, memory/caching_allocator.hpp). It is more than what
// tensors take at once: of a block that was freed a larger tensor has no use, and what one stream freed another one has none of.
#pragma once

#include <optional>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Of a rank of a plan. None where the order of tensors is not followed: passes for weights of their own, windows of recomputation,
// checkpoints of several layers, outputs that a pipeline keeps, and what is offloaded; nor of plans that need 100 times what a
// device has, nor of so many passes that it would take seconds (GPipe of thousands of microbatches).
//
// Weights and gradients are allocated first, the state of the optimizer when it first steps. Gathered weights come to a stream of
// their own and are copied from there where the stack copies units; shards of gradients are reduced to on a third [PyTorch,
// torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather and foreach_reduce], and are freed before the next
// iteration (zero_grad).
std::optional<AllocatorUse> allocator_use(const Plan& plan, std::int64_t rank);

// Its `reserved` alone, at half the cost.
std::optional<Bytes> reserved_bytes(const Plan& plan, std::int64_t rank);

// What the device of the peak rank holds with non-torch memory, as nvidia-smi shows it, where that is known.
std::optional<Bytes> held_bytes(const Plan& plan);

// The evaluation with its verdict by what PyTorch will hold on the peak rank. What holds more than the device has is marginal where
// the allocator stays within it by giving free segments back, or with segments that grow; and does not fit otherwise.
Evaluation settled(Evaluation evaluation);

}  // namespace headroom

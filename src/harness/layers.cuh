// Whole transformer layers, forward and backward, with each recomputation policy, and what the allocator counts.
#pragma once

#include <cstddef>
#include <vector>

#include "check.cuh"
#include "layer_reference.hpp"
#include "session.cuh"

namespace headroom::harness {

// Who runs a layer: one rank of a tensor-parallel group, or a rank alone that plays one of it.
struct LayerRank {
  ncclComm_t communicator;  // null when alone
  std::int64_t shard;
  cudaStream_t stream;
  Together together;
};

// `samples` in pairs of forward and backward. All ranks of the group call it, with the same samples.
void measure_layers(const std::vector<Sample>& samples, const LayerRank& rank, const Session& session);

// More than the layer's tensors [K22 eq. 2], gradients among them, take of its pool.
std::size_t pool_bytes(const LayerSize& size);

// Runs a tiny layer of the type that `format` names and compares its output and all gradients with reference_layer().
// `shards`: the group's ranks, 1 when alone. Throws SampleError where one is off.
void check_layer(HalfFormat format, RecomputePolicy recompute, std::int64_t shards, const LayerRank& rank);

}  // namespace headroom::harness

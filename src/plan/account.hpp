// What a plan says beside its numbers, and which rank is the peak rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Of the ranks that hold the most, the first.
std::size_t peak_rank(const std::vector<RankMemory>& ranks);

// Of a host of devices that have so much there each. Expects a system that has hosts.
HostMemory host_memory(const System& system, std::int64_t devices, Bytes on_host);

std::vector<Assumption> assumptions_of(const System& system, const Software& software,
                                       const Strategy& strategy);

// Of a plan with memory and timing. `activations` are those of its model, so many of each kind, under its
// recomputation.
std::vector<Warning> warnings_of(const Plan& plan, const ModelActivations& activations,
                                 const KindCounts& counts, bool reduction_within_fit);

}  // namespace headroom

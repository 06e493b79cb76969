// Warnings and assumptions of a plan, and its peak rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headroom/memory/stage.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// Returns the first of the ranks that hold the most.
std::size_t peak_rank(const std::vector<RankMemory>& ranks);

// Returns the memory of a host whose `devices` GPUs each keep `on_host` bytes there. Expects a system that
// has hosts.
HostMemory host_memory(const System& system, std::int64_t devices, Bytes on_host);

std::vector<Assumption> assumptions_of(const System& system, const Software& software,
                                       const Strategy& strategy);

// Returns the warnings of a plan with memory and timing. `activations` are those of the plan's model under
// its recomputation, for `counts` layers of each kind.
std::vector<Warning> warnings_of(const Plan& plan, const ModelActivations& activations,
                                 const KindCounts& counts, bool reduction_within_fit);

}  // namespace headroom

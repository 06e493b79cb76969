// NCCL's collectives over 2, 4, 8 ... ranks up to all of them, within a node and over several.
#pragma once

#include <vector>

#include "session.cuh"
#include "world.cuh"

namespace headroom::harness {

// All ranks call it, with the same samples.
void measure_collectives(const std::vector<Sample>& samples, const RankGroup& all, const Session& session);

}  // namespace headroom::harness

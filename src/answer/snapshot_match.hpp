// Matches the blocks of a run's memory snapshot to predicted tensors, by size, place and life.
#pragma once

#include "headroom/answer/snapshot_use.hpp"

namespace headroom {

// Returns the match of a snapshot with what its plan predicts for the same rank. Blocks are
// matched one by one: of equal size and place, then of equal size, then the optimizer's main params and
// moments for themselves, then buffers that hold a whole part of the state.
SnapshotMatch matched(const SnapshotUse& use, const SnapshotUse& predicted, const Plan& plan,
                      std::size_t rank);

}  // namespace headroom

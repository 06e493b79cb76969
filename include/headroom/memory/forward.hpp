// Peak memory of a forward pass through a table of ops, or of a recomputation of some ops, beyond what
// earlier passes left. It counts values that nothing saves, from the op that makes them to the last op that
// reads them. They live longer if the code that calls the ops still refers to them (Value::held_until). Bytes
// are of one rank.
//
// The peak matters if values are larger than what is saved of them: expert tokens around an all-to-all, or
// tokens padded for FP8.
#pragma once

#include "headroom/memory/stage.hpp"
#include "headroom/parallel/recomputed_ops.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

// Returns the peak as an excess over what the forward pass leaves at its end. `freed` is what the pass has
// not made yet.
BackwardPeak forward_peak(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                          Detail detail, const Bindings& letters);

// Returns the peak of a recomputation in a backward pass that has reached the recomputed ops. `working_set`
// is what the recomputation holds at its end.
BackwardPeak replay_peak(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                         Bytes working_set, Detail detail, const Bindings& letters);

}  // namespace headroom

// What is alive at the worst moment of a forward pass through a table of ops, or of a recomputation of some of them, beside what
// passes before it left: values that nothing keeps, from the op that makes them to the last that reads them, and longer where
// the code that calls the ops refers to them still (Value::held_until). Bytes are of one rank.
//
// It matters where values are larger than what is kept of them: rows of experts around an all-to-all, or padded for FP8.
#pragma once

#include "headroom/memory/stage.hpp"

namespace headroom {

// As an excess over what the forward pass leaves when it is done: `freed` is what it has not made yet.
BackwardPeak forward_peak(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                          Detail detail, const Bindings& letters);

// The same of a recomputation, in a backward pass that has come to the ops which run again. `working_set` is what it holds when it
// is done.
BackwardPeak replay_peak(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                         Bytes working_set, Detail detail, const Bindings& letters);

}  // namespace headroom

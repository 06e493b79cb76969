// Tensors that passes through a table of ops allocate and free on one rank, in order, for an allocator to
// serve (memory/caching_allocator.hpp). They are the tensors that memory/forward.hpp and memory/backward.hpp
// count at their peak.
#pragma once

#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/memory/stage.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/recomputed_ops.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

// Allocation of a tensor, or its release if `bytes` is negative. Tensors of a pass are numbered from 0.
struct MemoryEvent {
  int tensor = 0;
  Bytes bytes = Bytes(-1);
  friend bool operator==(const MemoryEvent&, const MemoryEvent&) = default;
};
constexpr bool frees(const MemoryEvent& event) { return event.bytes < Bytes(0); }

struct PassEvents {
  std::vector<MemoryEvent> forward;   // the tensors it leaves are those the layer keeps
  std::vector<MemoryEvent> backward;  // frees all remaining tensors but `weight_gradients`
  std::vector<int> weight_gradients;  // stay until their unit is reduced, or the step
  int tensors = 0;
};

// Returns the events of one pass through the table each way, with some ops recomputed. A layer's input is
// allocated with it. Its result is freed at the end of its forward pass, because the next layer allocates it
// again and gets the same block. `gradients`: see pass_gradients().
PassEvents pass_events(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                       Detail detail, const Software& software, const Bindings& letters,
                       std::optional<PassGradients> gradients);

}  // namespace headroom

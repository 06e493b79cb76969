// The tensors that passes through a table of ops allocate and free on one rank, in order: what the walks of memory/forward.hpp and
// memory/backward.hpp count at their worst moment, one by one, for an allocator to serve (memory/caching_allocator.hpp).
#pragma once

#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/memory/stage.hpp"

namespace headroom {

// A tensor is allocated, or freed where no bytes are given. Tensors of one pass have numbers of their own, from 0 on.
struct MemoryEvent {
  int tensor = 0;
  Bytes bytes = Bytes(-1);
  friend bool operator==(const MemoryEvent&, const MemoryEvent&) = default;
};
constexpr bool frees(const MemoryEvent& event) { return event.bytes < Bytes(0); }

struct PassEvents {
  std::vector<MemoryEvent> forward;   // what it leaves is what the layer keeps
  std::vector<MemoryEvent> backward;  // frees all that is left, but for `weight_gradients`
  std::vector<int> weight_gradients;  // that stay until they are reduced, where units are (memory/units.hpp)
  int tensors = 0;
};

// Of one pass through the table each way, under a recomputation of some of its ops. A layer's input is allocated with it, and its
// result is freed at the end of its forward pass: the next layer allocates it again, and is served from where it was.
PassEvents pass_events(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                       Detail detail, const Software& software, const Bindings& letters, bool reduces_units);

}  // namespace headroom

// Lives of the blocks of a memory snapshot: when each was allocated and freed, replayed from its trace.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/interop/memory_snapshot.hpp"

namespace headroom {

// Events are numbered from 0. A block that was there before the first has `from` -1; one that is there
// after the last has their number as `to`.
struct LivingBlock {
  std::int64_t bytes = 0;  // of the tensor, rounded up to 512
  std::uint32_t stack = 0;
  std::int64_t from = -1;
  std::int64_t to = 0;
};

// Blocks of tensors of a device, and the event after which they take the most: -1 for the start.
struct BlockLives {
  std::vector<LivingBlock> blocks;
  std::int64_t peak_event = -1;
  Bytes peak;
  Bytes reserved_at_peak;  // of segments
};

// Follows the trace of a device. The trace may begin anywhere: a ring buffer drops the oldest events.
BlockLives block_lives(const MemorySnapshot& snapshot, std::int64_t device);

inline bool is_alive(const LivingBlock& block, std::int64_t event) {
  return block.from <= event && event < block.to;
}

}  // namespace headroom

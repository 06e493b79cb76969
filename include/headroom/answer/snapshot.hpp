// Question of `headroom estimate --snapshot`: what PyTorch's allocator of the fullest pipeline rank would
// show in a memory snapshot after an iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "headroom/interop/memory_snapshot.hpp"
#include "headroom/plan/allocator_trace.hpp"

namespace headroom {

struct PlannedSnapshot {
  std::size_t rank = 0;  // pipeline rank
  MemorySnapshot snapshot;
  std::int64_t microbatches = 0;      // that its trace shows
  std::int64_t all_microbatches = 0;  // of the iteration; the others repeat those
};

// Returns the snapshot of a settled plan, whether it fits or not, of the pipeline rank asked for or of the
// one that reserves the most. Throws InputError with the field "snapshot" if the allocator's account of the
// plan does not exist or has too many events, and with "pipeline_rank" if there is no such rank.
PlannedSnapshot planned_snapshot(const Plan& plan, std::optional<std::int64_t> asked = std::nullopt);

// Returns a trace as a snapshot of device 0. Frames name op and tensor ("attention:6:query, saved"), layer
// ("layer:12:dense", counted from 0) and pass ("microbatch:3:forward", from 1). Times count events.
MemorySnapshot snapshot_of(const AllocatorTrace& trace);

}  // namespace headroom

// Replays what passes allocate and free on a rank, one tensor after another, in the order of the schedule
// (plan/allocator_use.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/memory/caching_allocator.hpp"
#include "plan/replayed_ranks.hpp"

namespace headroom {

class AllocationLog;

// Whether periods and iterations that are alike run tensor by tensor.
enum class Repeats : std::uint8_t { replayed, skipped };

struct ReplayedAllocator {
  CachingAllocator allocator;
  std::int64_t passes = 0;  // that ran tensor by tensor
};

// Returns the allocator after a rank's iterations, or nothing if they have too many passes to replay
// (plan/allocator_use.hpp). With Repeats::skipped, reserved(), most_allocated() and out_of_memory() are
// those of Repeats::replayed. The replay stops where the allocator runs out of memory. `log`: null, or what
// logs the last iteration, which is then replayed also if it is like the one before; expects sources in
// `ranks`.
std::optional<ReplayedAllocator> replay(const ReplayedRanks& ranks, std::int64_t rank,
                                        CachingAllocator allocator, Repeats repeats = Repeats::skipped,
                                        AllocationLog* log = nullptr);

}  // namespace headroom

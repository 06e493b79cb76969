#include "headroom/plan/allocator_trace.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "plan/allocation_log.hpp"
#include "plan/allocator_replay.hpp"
#include "plan/replayable.hpp"

namespace headroom {

std::variant<AllocatorTrace, std::string_view> allocator_trace(const Plan& plan, std::int64_t rank) {
  const std::string_view reason = unreplayed(plan, plan.ranks[index(rank)]);
  if (!reason.empty()) return reason;
  const bool expandable = plan.request.software.memory.expandable_segments;
  AllocationLog log;
  const ReplayedRanks ranks = replayed_ranks(plan, Sources::listed);
  if (!replay(ranks, rank, CachingAllocator(expandable), Repeats::skipped, &log)) return too_many_passes;
  if (log.overflows()) return "the iteration has too many allocations for a snapshot";
  AllocatorTrace trace = std::move(log).trace();
  trace.layers = plan.layers;
  trace.expandable = expandable;
  trace.all_microbatches = microbatches(plan.request.strategy, plan.request.workload);
  return trace;
}

Bytes most_allocated(const AllocatorTrace& trace) {
  const auto bytes_of = [](const TracedBlock& block) {
    return CachingAllocator::block_bytes(Bytes(real(block.requested)));
  };
  std::int64_t now = 0;
  for (const TracedSegment& segment : trace.segments) {
    for (const TracedBlock& block : segment.blocks) now += bytes_of(block);
  }
  // From the end of the iteration back to its start.
  std::int64_t most = now;
  for (auto event = trace.events.rbegin(); event != trace.events.rend(); ++event) {
    if (event->action == TracedAction::allocate) now -= bytes_of(event->block);
    if (event->action == TracedAction::free) now += bytes_of(event->block);
    most = std::max(most, now);
  }
  return Bytes(real(most));
}

Bytes reserved(const AllocatorTrace& trace) {
  Bytes bytes;
  for (const TracedSegment& segment : trace.segments) bytes += Bytes(real(segment.bytes));
  return bytes;
}

}  // namespace headroom

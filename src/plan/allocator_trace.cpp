#include "headroom/plan/allocator_trace.hpp"

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

}  // namespace headroom

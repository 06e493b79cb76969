#include "plan/allocation_log.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "headroom/core/expects.hpp"

namespace headroom {

void AllocationLog::start() {
  started_ = true;
  // Tensors that were freed are of no use to later events.
  std::vector<TracedTensor> alive;
  for (auto& [address, held] : held_) {
    alive.push_back(tensors_[held.block.tensor]);
    held.block.tensor = static_cast<std::uint32_t>(alive.size() - 1);
  }
  tensors_ = std::move(alive);
}

void AllocationLog::add(const TracedEvent& event) {
  if (!started_ || overflows_) return;
  overflows_ = events_.size() == most_traced_events;
  if (!overflows_) events_.push_back(event);
}

void AllocationLog::take(Pool& pool, std::int64_t bytes, int stream) {
  add({.action = TracedAction::take_segment,
       .stream = stream,
       .block = {.address = pool.end, .bytes = bytes}});
  pool.end += bytes;
}

AllocationLog::Block AllocationLog::allocate(CachingAllocator& allocator, std::int64_t bytes, int stream,
                                             TracedTensor tensor) {
  const Bytes reserved = allocator.reserved();
  const Bytes allocated = allocator.allocated();
  const Block block = allocator.allocate_block(bytes, stream);
  const std::int64_t address = allocator.address(block);
  const auto of_block = static_cast<std::int64_t>((allocator.allocated() - allocated).count());
  const auto grown = static_cast<std::int64_t>((allocator.reserved() - reserved).count());
  if (grown > 0) {
    const bool small = CachingAllocator::is_small(bytes);
    Pool& pool = pools_[{stream, small}];
    if (pool.segments.empty()) pool.end = address;
    if (pool.segments.empty() || !allocator.expandable()) {
      pool.segments.push_back(
          {.address = pool.end, .bytes = grown, .stream = stream, .small = small, .blocks = {}});
    } else {
      pool.segments.back().bytes += grown;
    }
    take(pool, grown, stream);
  }
  const TracedBlock traced{.address = address,
                           .bytes = of_block,
                           .requested = static_cast<std::int64_t>(std::ceil(tensor.source.bytes.count())),
                           .tensor = static_cast<std::uint32_t>(tensors_.size())};
  tensor.pass = step_.pass;
  tensor.microbatch = step_.microbatch;
  if (!overflows_) {
    tensors_.push_back(tensor);
    if (started_ && step_.microbatch >= 0) microbatches_.insert(step_.microbatch);
  }
  held_[address] = {.block = traced, .stream = stream};
  add({.action = TracedAction::allocate, .stream = stream, .block = traced});
  return block;
}

void AllocationLog::free(CachingAllocator& allocator, Block block) {
  const auto held = held_.find(allocator.address(block));
  EXPECTS(held != held_.end());
  add({.action = TracedAction::free, .stream = held->second.stream, .block = held->second.block});
  held_.erase(held);
  allocator.free(block);
}

AllocatorTrace AllocationLog::trace() && {
  EXPECTS(started_);
  AllocatorTrace trace{.layers = {},
                       .tensors = std::move(tensors_),
                       .events = std::move(events_),
                       .segments = {},
                       .microbatches = std::ssize(microbatches_)};
  for (auto& [key, pool] : pools_) {
    for (TracedSegment& segment : pool.segments) trace.segments.push_back(std::move(segment));
  }
  std::sort(trace.segments.begin(), trace.segments.end(),
            [](const TracedSegment& x, const TracedSegment& y) { return x.address < y.address; });
  auto segment = trace.segments.begin();
  for (const auto& [address, held] : held_) {
    while (address >= segment->address + segment->bytes) ++segment;
    segment->blocks.push_back(held.block);
  }
  return trace;
}

}  // namespace headroom

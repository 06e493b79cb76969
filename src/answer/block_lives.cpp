#include "answer/block_lives.hpp"

#include <cstddef>
#include <unordered_map>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/memory/caching_allocator.hpp"

namespace headroom {
namespace {

class TraceWalk {
 public:
  explicit TraceWalk(const std::vector<SnapshotEvent>& events) : events_(events) {}

  void go() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const SnapshotEvent& event = events_[i];
      const auto now = static_cast<std::int64_t>(i);
      if (event.action == SnapshotAction::alloc) {
        end_life(event.address, now);
        open_[event.address] = blocks_.size();
        blocks_.push_back(life_of(event, now));
      } else if (event.action == SnapshotAction::free_requested) {
        if (end_life(event.address, now)) continue;
        blocks_.push_back(life_of(event, -1));
        blocks_.back().to = now;
      } else if (event.action == SnapshotAction::free_completed) {
        end_life(event.address, now);
      }
    }
  }

  // Adds a block that is there at the end, unless the trace allocated it.
  void hold(const SnapshotBlock& block) {
    if (open_.contains(block.address)) return;
    blocks_.push_back(
        {.bytes = rounded(block.requested), .stack = block.stack, .from = -1, .to = std::ssize(events_)});
  }

  std::vector<LivingBlock> take() && { return std::move(blocks_); }

 private:
  static std::int64_t rounded(std::int64_t bytes) {
    return CachingAllocator::block_bytes(Bytes(real(bytes)));
  }

  [[nodiscard]] LivingBlock life_of(const SnapshotEvent& event, std::int64_t from) const {
    return {.bytes = rounded(event.size), .stack = event.stack, .from = from, .to = std::ssize(events_)};
  }
  bool end_life(std::int64_t address, std::int64_t now) {
    const auto life = open_.find(address);
    if (life == open_.end()) return false;
    blocks_[life->second].to = now;
    open_.erase(life);
    return true;
  }

  const std::vector<SnapshotEvent>& events_;
  std::vector<LivingBlock> blocks_;
  std::unordered_map<std::int64_t, std::size_t> open_;  // by address
};

// What the trace adds to the segments at an event.
Bytes segment_change(const SnapshotEvent& event) {
  const Bytes size(real(event.size));
  switch (event.action) {
    case SnapshotAction::segment_alloc:
    case SnapshotAction::segment_map: return size;
    case SnapshotAction::segment_free:
    case SnapshotAction::segment_unmap: return -1.0 * size;
    default: return Bytes(0);
  }
}

}  // namespace

BlockLives block_lives(const MemorySnapshot& snapshot, std::int64_t device) {
  static const std::vector<SnapshotEvent> none;
  const bool has_trace = index(device) < snapshot.traces.size();
  const std::vector<SnapshotEvent>& events = has_trace ? snapshot.traces[index(device)] : none;
  TraceWalk walk(events);
  walk.go();
  Bytes reserved;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    reserved += Bytes(real(segment.size));
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == SnapshotState::allocated) walk.hold(block);
    }
  }
  BlockLives lives{.blocks = std::move(walk).take()};
  std::vector<Bytes> change(events.size() + 2);  // at the start, at each event, after the last
  for (const LivingBlock& block : lives.blocks) {
    change[index(block.from + 1)] += Bytes(real(block.bytes));
    change[index(block.to + 1)] -= Bytes(real(block.bytes));
  }
  for (const SnapshotEvent& event : events) reserved -= segment_change(event);
  Bytes now = change[0];
  lives.peak = now;
  lives.reserved_at_peak = reserved;
  for (std::size_t i = 0; i < events.size(); ++i) {
    now += change[i + 1];
    reserved += segment_change(events[i]);
    if (now <= lives.peak) continue;
    lives.peak = now;
    lives.peak_event = static_cast<std::int64_t>(i);
    lives.reserved_at_peak = reserved;
  }
  return lives;
}

}  // namespace headroom

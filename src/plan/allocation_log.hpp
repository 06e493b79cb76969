// A caching allocator whose blocks may be logged by what they hold, for a trace (plan/allocator_trace.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "headroom/memory/caching_allocator.hpp"
#include "headroom/plan/allocator_trace.hpp"

namespace headroom {

// Follows an allocator from its first block on. Keeps the events from start() on.
class AllocationLog {
 public:
  using Block = CachingAllocator::Block;

  // Allocates a block of so many bytes for a tensor of the step at hand.
  Block allocate(CachingAllocator& allocator, std::int64_t bytes, int stream, TracedTensor tensor);
  void free(CachingAllocator& allocator, Block block);
  // From here on tensors belong to a step.
  void begin(const Step& step) { step_ = step; }
  // From here on tensors belong to no step.
  void end_passes() { step_.microbatch = -1; }
  // From here on events are kept.
  void start();

  // Returns whether there were more events than a trace may have. The later ones are lost.
  [[nodiscard]] bool overflows() const { return overflows_; }
  // Returns what was logged, without layers. Expects start().
  AllocatorTrace trace() &&;

 private:
  struct Pool {
    std::int64_t end = 0;  // of its segments, which are contiguous
    std::vector<TracedSegment> segments;
  };
  struct Held {
    TracedBlock block;
    int stream = 0;
  };

  void add(const TracedEvent& event);
  void take(Pool& pool, std::int64_t bytes, int stream);

  Step step_{.microbatch = -1};
  bool started_ = false;
  bool overflows_ = false;
  std::vector<TracedTensor> tensors_;
  std::vector<TracedEvent> events_;
  std::set<std::int64_t> microbatches_;
  std::map<std::pair<int, bool>, Pool> pools_;  // by stream, and whether of small tensors
  std::map<std::int64_t, Held> held_;           // by address
};

// An allocator, and a log of it if there is one. `tensor` returns a TracedTensor and is only called for a
// log.
class LoggedAllocator {
 public:
  using Block = CachingAllocator::Block;

  LoggedAllocator(CachingAllocator allocator, AllocationLog* log)
      : allocator_(std::move(allocator)), log_(log) {}

  template <class Tensor>
  Block allocate(Bytes bytes, int stream, const Tensor& tensor) {
    if (log_ == nullptr) return allocator_.allocate(bytes, stream);
    TracedTensor traced = tensor();
    traced.source.bytes = bytes;
    return log_->allocate(allocator_, CachingAllocator::block_bytes(bytes), stream, traced);
  }
  template <class Tensor>
  Block allocate_block(std::int64_t bytes, int stream, const Tensor& tensor) {
    if (log_ == nullptr) return allocator_.allocate_block(bytes, stream);
    return log_->allocate(allocator_, bytes, stream, tensor());
  }
  void free(Block block) {
    if (log_ == nullptr) return allocator_.free(block);
    log_->free(allocator_, block);
  }

  [[nodiscard]] AllocationLog* log() const { return log_; }
  [[nodiscard]] const CachingAllocator& allocator() const { return allocator_; }
  CachingAllocator take() && { return std::move(allocator_); }

 private:
  CachingAllocator allocator_;
  AllocationLog* log_;
};

}  // namespace headroom

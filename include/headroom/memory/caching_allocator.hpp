// What PyTorch's allocator of device memory holds to serve tensors of given sizes in a given order: it takes segments from CUDA and
// keeps them, serves a tensor from the smallest free block that has room for it, and asks for a new segment where none has
// [PyTorch, c10/cuda/CUDACachingAllocator.cpp, DeviceCachingAllocator: round_size, get_pool, get_allocation_size, get_free_block,
// should_split, free_block]. Blocks of one stream serve no other, and small tensors have segments of their own.
//
// Within a limit, it gives segments that are free as a whole back to CUDA before it runs out, and asks again
// [DeviceCachingAllocator::malloc, release_cached_blocks]. Without one, what it holds may be more than a device has.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "headroom/core/units.hpp"

namespace headroom {

class CachingAllocator {
 public:
  using Block = std::int64_t;

  // `expandable`: segments that grow, one for each pool of each stream (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).
  explicit CachingAllocator(bool expandable) : expandable_(expandable) {}
  // Segments of fixed sizes, of which there may be so much.
  explicit CachingAllocator(Bytes limit) : limit_(static_cast<std::int64_t>(limit.count())) {}

  // Bytes are rounded up to 512; none take a block too.
  Block allocate(Bytes bytes, int stream);
  // Expects a block that is allocated.
  void free(Block block);

  [[nodiscard]] Bytes reserved() const { return Bytes(static_cast<double>(reserved_)); }
  [[nodiscard]] Bytes allocated() const { return Bytes(static_cast<double>(allocated_)); }
  [[nodiscard]] Bytes most_allocated() const { return Bytes(static_cast<double>(most_allocated_)); }
  // Whether a tensor found no room within the limit, with all that can be given back gone: torch.OutOfMemoryError.
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

 private:
  struct Piece {
    std::int64_t bytes = 0;
    bool used = false;
    std::int64_t segment = 0;
    int pool = 0;
  };
  using Address = std::int64_t;
  // Of one stream, of small or of large tensors: free pieces by size and address.
  using FreePieces = std::set<std::pair<std::int64_t, Address>>;

  Address take_segment(int pool, std::int64_t bytes);
  void give_back_free_segments();
  void mark_free(Address address, Piece piece);

  bool expandable_ = false;
  std::map<Address, Piece> pieces_;  // of all pools, each with addresses of its own
  std::map<int, FreePieces> free_;
  std::map<int, Address> ends_;
  std::int64_t segments_ = 0;
  std::map<std::int64_t, std::int64_t> segment_bytes_;
  std::int64_t limit_ = 0;  // 0: none
  bool out_of_memory_ = false;
  std::int64_t reserved_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t most_allocated_ = 0;
};

}  // namespace headroom

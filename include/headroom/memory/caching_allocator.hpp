// Model of PyTorch's caching allocator: the memory it reserves to serve tensors of given sizes in a given
// order. It takes segments from CUDA and keeps them. It serves a tensor from the smallest free block that
// fits and requests a new segment if none does [PyTorch, c10/cuda/CUDACachingAllocator.cpp,
// DeviceCachingAllocator: round_size, get_pool, get_allocation_size, get_free_block, should_split,
// free_block]. Blocks of one stream serve no other stream. Small tensors have segments of their own.
//
// With a limit, the allocator returns segments that are entirely free to CUDA before it runs out, and tries
// again [DeviceCachingAllocator::malloc, release_cached_blocks]. Without a limit, it may reserve more than a
// device has.
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

  // Creates an allocator without a limit. `expandable`: one growing segment for each pool of each stream
  // (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).
  explicit CachingAllocator(bool expandable) : expandable_(expandable) {}
  // Creates an allocator with segments of fixed sizes, `limit` bytes in all.
  explicit CachingAllocator(Bytes limit) : limit_(static_cast<std::int64_t>(limit.count())) {}

  // Allocates a block. Bytes are rounded up to a multiple of 512; zero bytes take a block too.
  Block allocate(Bytes bytes, int stream);
  // Frees a block. Expects an allocated block.
  void free(Block block);

  [[nodiscard]] Bytes reserved() const { return Bytes(static_cast<double>(reserved_)); }
  [[nodiscard]] Bytes allocated() const { return Bytes(static_cast<double>(allocated_)); }
  [[nodiscard]] Bytes most_allocated() const { return Bytes(static_cast<double>(most_allocated_)); }
  // Returns whether a tensor did not fit within the limit, even after all free segments were returned:
  // torch.OutOfMemoryError.
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

 private:
  struct Piece {
    std::int64_t bytes = 0;
    bool used = false;
    std::int64_t segment = 0;
    int pool = 0;
  };
  using Address = std::int64_t;
  // Free pieces by size and address, of one stream's small or large tensors.
  using FreePieces = std::set<std::pair<std::int64_t, Address>>;

  Address take_segment(int pool, std::int64_t bytes);
  void give_back_free_segments();
  void mark_free(Address address, Piece piece);

  bool expandable_ = false;
  std::map<Address, Piece> pieces_;  // of all pools; each pool has its own addresses
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

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

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headroom/core/units.hpp"

namespace headroom {

class CachingAllocator {
 public:
  using Block = std::int64_t;  // until it is freed

  // Creates an allocator without a limit. `expandable`: one growing segment for each pool of each stream
  // (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).
  explicit CachingAllocator(bool expandable) : expandable_(expandable) {}
  // Creates an allocator with segments of fixed sizes, `limit` bytes in all.
  explicit CachingAllocator(Bytes limit) : limit_(static_cast<std::int64_t>(limit.count())) {}

  // Allocates a block. Bytes are rounded up to a multiple of 512; zero bytes take a block too.
  Block allocate(Bytes bytes, int stream);
  // Frees a block. Expects an allocated block.
  void free(Block block);

  // Returns the address of an allocated block. Blocks of different streams never overlap.
  [[nodiscard]] std::int64_t address(Block block) const {
    return pieces_[static_cast<std::size_t>(block)].address;
  }
  [[nodiscard]] Bytes reserved() const { return Bytes(static_cast<double>(reserved_)); }
  [[nodiscard]] Bytes allocated() const { return Bytes(static_cast<double>(allocated_)); }
  [[nodiscard]] Bytes most_allocated() const { return Bytes(static_cast<double>(most_allocated_)); }
  // Returns whether a tensor did not fit within the limit, even after all free segments were returned:
  // torch.OutOfMemoryError.
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

 private:
  using Address = std::int64_t;
  using Index = std::int64_t;  // of a piece
  static constexpr Index none = -1;

  // A piece of a segment. `before` and `after` are its neighbours by address in the same segment.
  struct Piece {
    Address address = 0;
    std::int64_t bytes = 0;
    bool used = false;
    std::int64_t segment = 0;
    std::size_t pool = 0;
    Index before = none;
    Index after = none;
  };

  // Free pieces by size and address. Few sizes occur, each many times.
  class FreePieces {
   public:
    void add(const Piece& piece, Index index);
    void remove(const Piece& piece);
    // Returns the smallest piece of at least so many bytes, at the lowest address; none if there is none. Takes
    // the piece `last` only if no other fits.
    [[nodiscard]] Index smallest(std::int64_t bytes, Index last) const;

   private:
    struct Place {
      Address address = 0;
      Index index = none;
    };
    // Sizes without a piece stay, up to this many, since tensors of the same sizes come again.
    static constexpr std::size_t most_vacant = 256;

    [[nodiscard]] std::size_t first_of(std::int64_t bytes) const;  // size of at least so many bytes
    static std::vector<Place>::iterator place_of(std::vector<Place>& places, Address address);

    void drop_vacant();

    std::vector<std::int64_t> sizes_;         // ascending
    std::vector<std::vector<Place>> places_;  // of each size, from the highest address to the lowest
    std::size_t vacant_ = 0;                  // sizes without a piece
  };

  // One stream's small or large tensors.
  struct Pool {
    FreePieces free;
    Address end = 0;    // of its segments
    Index last = none;  // piece at the end
  };

  Pool& pool(std::size_t number);
  Index take_segment(std::size_t number, std::int64_t bytes);
  void give_back_free_segments();
  Index added(const Piece& piece);
  void remove(Index index);
  void link(Index before, Index after);
  Index mark_free(Index index);
  Piece& at(Index index) { return pieces_[static_cast<std::size_t>(index)]; }

  bool expandable_ = false;
  std::vector<Piece> pieces_;  // of all pools; each pool has its own addresses
  std::vector<Index> vacant_;  // indices of pieces that are no more
  std::vector<Pool> pools_;    // two for each stream
  std::int64_t segments_ = 0;  // taken so far
  std::int64_t limit_ = 0;     // 0: none
  bool out_of_memory_ = false;
  std::int64_t reserved_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t most_allocated_ = 0;
};

}  // namespace headroom

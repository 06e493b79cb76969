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

#include <array>
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

  // Returns the bytes of a tensor's block: a multiple of 512, and 512 for zero bytes.
  [[nodiscard]] static std::int64_t block_bytes(Bytes tensor);
  // Returns whether a block of so many bytes lies in the segments of small tensors.
  [[nodiscard]] static bool is_small(std::int64_t block);
  // Allocates a block for a tensor.
  Block allocate(Bytes tensor, int stream) { return allocate_block(block_bytes(tensor), stream); }
  // Allocates a block of so many bytes. Expects a result of block_bytes().
  Block allocate_block(std::int64_t size, int stream);
  // Frees a block. Expects an allocated block.
  void free(Block block);

  // Returns the address of an allocated block. Blocks of different streams never overlap.
  [[nodiscard]] std::int64_t address(Block block) const {
    return pieces_[static_cast<std::size_t>(block)].address;
  }
  [[nodiscard]] bool expandable() const { return expandable_; }
  [[nodiscard]] Bytes reserved() const { return Bytes(static_cast<double>(reserved_)); }
  [[nodiscard]] Bytes allocated() const { return Bytes(static_cast<double>(allocated_)); }
  [[nodiscard]] Bytes most_allocated() const { return Bytes(static_cast<double>(most_allocated_)); }
  // Returns whether a tensor did not fit within the limit, even after all free segments were returned:
  // torch.OutOfMemoryError.
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

  // Numbers that say where all blocks and free pieces lie. Allocators with equal layouts serve what follows at
  // equal addresses.
  using Layout = std::vector<std::int64_t>;
  [[nodiscard]] Layout layout() const;
  // Returns layout() == other, mostly without listing all of it.
  [[nodiscard]] bool has_layout(const Layout& other) const;

 private:
  using Address = std::int64_t;
  using Index = std::int64_t;  // of a piece
  static constexpr Index none = -1;

  // A piece of a segment. `before` and `after` are its neighbours by address in the same segment.
  struct Piece {
    Address address = 0;
    std::int64_t bytes = 0;
    Index before = none;
    Index after = none;
    std::uint32_t pool = 0;
    std::uint32_t size = 0;  // of a free piece: index into FreePieces::sizes_
    bool used = false;
  };

  // Free pieces by size and address. Few sizes occur, each many times.
  class FreePieces {
   public:
    void add(Piece& piece, Index index);
    void remove(const Piece& piece);
    // Returns the smallest piece of at least so many bytes, at the lowest address; none if there is none. Takes
    // the piece `last` only if no other fits.
    [[nodiscard]] Index smallest(std::int64_t bytes, Index last);

   private:
    struct Place {
      Address address = 0;
      Index index = none;
    };
    struct Size {
      std::int64_t bytes = 0;
      std::size_t order = 0;      // index into ascending_
      std::vector<Place> places;  // those from `first` on are free, by ascending address
      std::size_t first = 0;
      [[nodiscard]] bool empty() const { return first == places.size(); }
    };
    struct Entry {
      std::int64_t bytes = 0;
      std::uint32_t size = 0;  // index into sizes_
    };
    // Sizes without a piece stay, up to this many, since tensors of the same sizes come again.
    static constexpr std::size_t most_vacant = 512;

    std::uint32_t size_of(std::int64_t bytes);
    [[nodiscard]] std::size_t occupied_from(std::size_t order) const;  // or the number of sizes
    void set_occupied(std::size_t order, bool occupied);
    void drop_vacant();
    void number_sizes(std::size_t from);  // in the order of ascending_, which changed from there

    std::vector<Size> sizes_;
    std::vector<std::uint32_t> unused_;    // indices into sizes_
    std::vector<Entry> ascending_;         // sizes in use
    std::vector<std::uint64_t> occupied_;  // bits: whether sizes have a piece, in the order of ascending_
    std::array<Entry, 256> recent_{};      // sizes last asked for, by a hash of their bytes
  };

  // One stream's small or large tensors.
  struct Pool {
    FreePieces free;
    Address end = 0;              // of its segments
    Index last = none;            // piece at the end
    std::vector<Index> segments;  // first piece of each segment, by ascending address
  };

  Pool& pool(std::size_t number);
  Index take_segment(std::size_t number, std::int64_t bytes);
  void give_back_free_segments();
  Index added(const Piece& piece);
  void remove(Index index);
  void link(Index before, Index after);
  Index mark_free(Index index);
  template <class Visit>
  bool visit_layout(const Visit& visit) const;
  Piece& at(Index index) { return pieces_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const Piece& at(Index index) const { return pieces_[static_cast<std::size_t>(index)]; }

  bool expandable_ = false;
  std::vector<Piece> pieces_;  // of all pools; each pool has its own addresses
  std::vector<Index> vacant_;  // indices of pieces that are no more
  std::vector<Pool> pools_;    // two for each stream
  std::int64_t limit_ = 0;     // 0: none
  bool out_of_memory_ = false;
  std::int64_t reserved_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t most_allocated_ = 0;
};

}  // namespace headroom

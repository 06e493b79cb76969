#include "headroom/memory/caching_allocator.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

// Constants of c10/cuda/CUDACachingAllocator.h: kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer,
// kMinLargeAlloc, kRoundLarge.
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t granule = 512;
constexpr std::int64_t largest_small = mebibyte;
constexpr std::int64_t small_segment = 2 * mebibyte;
constexpr std::int64_t large_segment = 20 * mebibyte;
constexpr std::int64_t least_own_segment = 10 * mebibyte;
constexpr std::int64_t segment_granule = 2 * mebibyte;
// Span of addresses of a pool: more than any device has, yet 63 bits hold enough pools.
constexpr std::int64_t pool_span = std::int64_t{1} << 50;
// Largest size of a tensor. Larger tensors than any device holds are cut to it, so that sums stay within 63
// bits.
constexpr double most_bytes = 1.0e14;

constexpr std::int64_t rounded_up(std::int64_t bytes, std::int64_t step) {
  return (bytes + step - 1) / step * step;
}

constexpr std::int64_t segment_for(std::int64_t bytes) {
  if (bytes <= largest_small) return small_segment;
  return bytes < least_own_segment ? large_segment : rounded_up(bytes, segment_granule);
}

}  // namespace

CachingAllocator::Block CachingAllocator::allocate(Bytes bytes, int stream) {
  EXPECTS(stream >= 0 && bytes >= Bytes(0));
  const auto asked = static_cast<std::int64_t>(std::min(std::ceil(bytes.count()), most_bytes));
  const std::int64_t size = std::max(granule, rounded_up(asked, granule));
  const bool small = size <= largest_small;
  const int pool = 2 * stream + (small ? 1 : 0);
  FreePieces& free = free_[pool];
  auto fitting = free.lower_bound({size, 0});
  // The piece at the end of a growing segment counts at its largest possible size, so any other piece that
  // fits is taken first.
  if (expandable_ && fitting != free.end() && std::next(fitting) != free.end() &&
      fitting->second + fitting->first == ends_[pool])
    ++fitting;
  const Address address = fitting == free.end() ? take_segment(pool, size) : fitting->second;
  Piece& piece = pieces_[address];
  free.erase({piece.bytes, address});
  const std::int64_t rest = piece.bytes - size;
  if (small || expandable_ ? rest >= granule : rest > largest_small) {
    piece.bytes = size;
    pieces_[address + size] = {.bytes = rest, .segment = piece.segment, .pool = pool};
    free.insert({rest, address + size});
  }
  piece.used = true;
  allocated_ += piece.bytes;
  most_allocated_ = std::max(most_allocated_, allocated_);
  return address;
}

void CachingAllocator::free(Block block) {
  const auto found = pieces_.find(block);
  EXPECTS(found != pieces_.end() && found->second.used);
  allocated_ -= found->second.bytes;
  mark_free(block, found->second);
}

// Returns the address of a free piece that fits.
CachingAllocator::Address CachingAllocator::take_segment(int pool, std::int64_t bytes) {
  Address& end = ends_.try_emplace(pool, pool * pool_span).first->second;
  std::int64_t taken = segment_for(bytes);
  if (expandable_) {  // grows by what the free piece at its end lacks
    const std::int64_t step = bytes <= largest_small ? small_segment : large_segment;
    const auto after = pieces_.lower_bound(end);
    const bool open =
        after != pieces_.begin() && std::prev(after)->second.pool == pool && !std::prev(after)->second.used;
    taken = rounded_up(bytes - (open ? std::prev(after)->second.bytes : 0), step);
  } else {
    if (limit_ > 0 && reserved_ + taken > limit_) {
      give_back_free_segments();
      out_of_memory_ = out_of_memory_ || reserved_ + taken > limit_;
    }
    segment_bytes_[++segments_] = taken;
  }
  const Address address = end;
  end += taken;
  reserved_ += taken;
  mark_free(address, {.bytes = taken, .segment = expandable_ ? 0 : segments_, .pool = pool});
  return std::prev(pieces_.lower_bound(end))->first;
}

void CachingAllocator::give_back_free_segments() {
  for (auto at = pieces_.begin(); at != pieces_.end();) {
    const auto& [address, piece] = *at;
    if (piece.used || piece.bytes < segment_bytes_.at(piece.segment)) {
      ++at;
      continue;
    }
    reserved_ -= piece.bytes;
    free_[piece.pool].erase({piece.bytes, address});
    at = pieces_.erase(at);
  }
}

// Joins the piece with free neighbours of the same segment.
void CachingAllocator::mark_free(Address address, Piece piece) {
  FreePieces& free = free_[piece.pool];
  const auto alike = [&](const Piece& other) {
    return !other.used && other.pool == piece.pool && other.segment == piece.segment;
  };
  piece.used = false;
  const auto after = pieces_.find(address + piece.bytes);
  if (after != pieces_.end() && alike(after->second)) {
    free.erase({after->second.bytes, after->first});
    piece.bytes += after->second.bytes;
    pieces_.erase(after);
  }
  const auto at = pieces_.lower_bound(address);
  if (at != pieces_.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second.bytes == address && alike(before->second)) {
      free.erase({before->second.bytes, before->first});
      piece.bytes += before->second.bytes;
      pieces_.erase(address);
      address = before->first;
    }
  }
  pieces_[address] = piece;
  free.insert({piece.bytes, address});
}

}  // namespace headroom

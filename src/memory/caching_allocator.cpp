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

std::size_t CachingAllocator::FreePieces::first_of(std::int64_t bytes) const {
  return static_cast<std::size_t>(std::lower_bound(sizes_.begin(), sizes_.end(), bytes) - sizes_.begin());
}

void CachingAllocator::FreePieces::add(const Piece& piece, Index index) {
  std::size_t size = first_of(piece.bytes);
  if (size == sizes_.size() || sizes_[size] != piece.bytes) {
    if (vacant_ > most_vacant) {
      drop_vacant();
      size = first_of(piece.bytes);
    }
    const auto at = static_cast<std::ptrdiff_t>(size);
    sizes_.insert(sizes_.begin() + at, piece.bytes);
    places_.insert(places_.begin() + at, std::vector<Place>());
    ++vacant_;
  }
  std::vector<Place>& places = places_[size];
  if (places.empty()) --vacant_;
  places.insert(place_of(places, piece.address), {piece.address, index});
}

void CachingAllocator::FreePieces::remove(const Piece& piece) {
  const std::size_t size = first_of(piece.bytes);
  EXPECTS(size < sizes_.size() && sizes_[size] == piece.bytes);
  std::vector<Place>& places = places_[size];
  const auto place = place_of(places, piece.address);
  EXPECTS(place != places.end() && place->address == piece.address);
  places.erase(place);
  if (places.empty()) ++vacant_;
}

CachingAllocator::Index CachingAllocator::FreePieces::smallest(std::int64_t bytes, Index last) const {
  for (std::size_t size = first_of(bytes); size < sizes_.size(); ++size) {
    const std::vector<Place>& places = places_[size];
    if (places.empty()) continue;
    if (places.back().index != last) return places.back().index;
    if (places.size() > 1) return places[places.size() - 2].index;
    const Index larger = smallest(sizes_[size] + 1, none);
    return larger == none ? last : larger;
  }
  return none;
}

void CachingAllocator::FreePieces::drop_vacant() {
  std::size_t kept = 0;
  for (std::size_t size = 0; size < sizes_.size(); ++size) {
    if (places_[size].empty()) continue;
    sizes_[kept] = sizes_[size];
    if (kept != size) places_[kept] = std::move(places_[size]);
    ++kept;
  }
  sizes_.resize(kept);
  places_.resize(kept);
  vacant_ = 0;
}

std::vector<CachingAllocator::FreePieces::Place>::iterator CachingAllocator::FreePieces::place_of(
    std::vector<Place>& places, Address address) {
  return std::lower_bound(places.begin(), places.end(), address,
                          [](const Place& x, Address other) { return x.address > other; });
}

CachingAllocator::Pool& CachingAllocator::pool(std::size_t number) {
  while (pools_.size() <= number) pools_.push_back({.end = std::int64_t(pools_.size()) * pool_span});
  return pools_[number];
}

CachingAllocator::Block CachingAllocator::allocate(Bytes bytes, int stream) {
  EXPECTS(stream >= 0 && bytes >= Bytes(0));
  const auto asked = static_cast<std::int64_t>(std::min(std::ceil(bytes.count()), most_bytes));
  const std::int64_t size = std::max(granule, rounded_up(asked, granule));
  const bool small = size <= largest_small;
  const std::size_t number = 2 * static_cast<std::size_t>(stream) + (small ? 1 : 0);
  // The piece at the end of a growing segment counts at its largest possible size, so any other piece that
  // fits is taken first.
  const Pool& open = pool(number);
  Index index = open.free.smallest(size, expandable_ ? open.last : none);
  if (index == none) index = take_segment(number, size);
  FreePieces& free = pools_[number].free;
  free.remove(at(index));
  at(index).used = true;
  const std::int64_t rest = at(index).bytes - size;
  if (small || expandable_ ? rest >= granule : rest > largest_small) {
    const Index after = at(index).after;
    at(index).bytes = size;
    const Index left = added(
        {.address = at(index).address + size, .bytes = rest, .segment = at(index).segment, .pool = number});
    link(left, after);
    link(index, left);
    free.add(at(left), left);
  }
  allocated_ += at(index).bytes;
  most_allocated_ = std::max(most_allocated_, allocated_);
  return index;
}

void CachingAllocator::free(Block block) {
  EXPECTS(block >= 0 && block < std::ssize(pieces_) && at(block).used);
  allocated_ -= at(block).bytes;
  mark_free(block);
}

// Returns the index of a free piece that fits.
CachingAllocator::Index CachingAllocator::take_segment(std::size_t number, std::int64_t bytes) {
  Pool& pool = pools_[number];
  std::int64_t taken = segment_for(bytes);
  if (expandable_) {  // grows by what the free piece at its end lacks
    const std::int64_t step = bytes <= largest_small ? small_segment : large_segment;
    const bool open = pool.last != none && !at(pool.last).used;
    taken = rounded_up(bytes - (open ? at(pool.last).bytes : 0), step);
  } else {
    if (limit_ > 0 && reserved_ + taken > limit_) {
      give_back_free_segments();
      out_of_memory_ = out_of_memory_ || reserved_ + taken > limit_;
    }
    ++segments_;
  }
  const Index index = added({.address = pool.end,
                             .bytes = taken,
                             .used = true,
                             .segment = expandable_ ? 0 : segments_,
                             .pool = number});
  if (expandable_ && pool.last != none) link(pool.last, index);
  pool.last = index;
  pool.end += taken;
  reserved_ += taken;
  return mark_free(index);
}

void CachingAllocator::give_back_free_segments() {
  for (Index index = 0; index < std::ssize(pieces_); ++index) {
    const Piece& piece = at(index);
    const bool whole = piece.before == none && piece.after == none;
    if (piece.bytes == 0 || piece.used || !whole) continue;
    reserved_ -= piece.bytes;
    pools_[piece.pool].free.remove(piece);
    remove(index);
  }
}

CachingAllocator::Index CachingAllocator::added(const Piece& piece) {
  if (vacant_.empty()) {
    pieces_.push_back(piece);
    return std::ssize(pieces_) - 1;
  }
  const Index index = vacant_.back();
  vacant_.pop_back();
  at(index) = piece;
  return index;
}

void CachingAllocator::remove(Index index) {
  at(index) = {};
  vacant_.push_back(index);
}

void CachingAllocator::link(Index before, Index after) {
  at(before).after = after;
  if (after != none) {
    at(after).before = before;
  } else if (expandable_) {
    pools_[at(before).pool].last = before;
  }
}

// Joins the piece with free neighbours of the same segment, and returns the index of the joined piece.
CachingAllocator::Index CachingAllocator::mark_free(Index index) {
  FreePieces& free = pools_[at(index).pool].free;
  at(index).used = false;
  const auto join = [&](Index first, Index second) {
    const Index after = at(second).after;
    at(first).bytes += at(second).bytes;
    remove(second);
    link(first, after);
    return first;
  };
  if (const Index after = at(index).after; after != none && !at(after).used) {
    free.remove(at(after));
    join(index, after);
  }
  if (const Index before = at(index).before; before != none && !at(before).used) {
    free.remove(at(before));
    index = join(before, index);
  }
  free.add(at(index), index);
  return index;
}

}  // namespace headroom

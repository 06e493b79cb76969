#include "headroom/memory/caching_allocator.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

// Constants of c10/cuda/CUDACachingAllocator.h: kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer,
// kMinLargeAlloc, kRoundLarge.
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t granule = 512;
constexpr std::size_t word_bits = 64;
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

void CachingAllocator::FreePieces::add(Piece& piece, Index index) {
  piece.size = size_of(piece.bytes);
  Size& size = sizes_[piece.size];
  std::vector<Place>& places = size.places;
  if (size.empty()) {
    set_occupied(size.order, true);
    places.assign(1, {piece.address, index});
    size.first = 0;
    return;
  }
  if (places.size() > 32 && 2 * size.first > places.size()) {
    places.erase(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(size.first));
    size.first = 0;
  }
  const auto first = places.begin() + static_cast<std::ptrdiff_t>(size.first);
  const auto after = std::lower_bound(first, places.end(), piece.address,
                                      [](const Place& x, Address address) { return x.address < address; });
  if (size.first > 0 && after - first < places.end() - after) {
    std::move(first, after, first - 1);
    *(after - 1) = {piece.address, index};
    --size.first;
  } else {
    places.insert(after, {piece.address, index});
  }
}

void CachingAllocator::FreePieces::remove(const Piece& piece) {
  Size& size = sizes_[piece.size];
  std::vector<Place>& places = size.places;
  const auto first = places.begin() + static_cast<std::ptrdiff_t>(size.first);
  const auto at = std::lower_bound(first, places.end(), piece.address,
                                   [](const Place& x, Address address) { return x.address < address; });
  EXPECTS(size.bytes == piece.bytes && at != places.end() && at->address == piece.address);
  if (at == first) {
    ++size.first;
  } else {
    places.erase(at);
  }
  if (size.empty()) set_occupied(size.order, false);
}

CachingAllocator::Index CachingAllocator::FreePieces::smallest(std::int64_t bytes, Index last) {
  const auto size_at = [&](std::size_t order) -> const Size& { return sizes_[ascending_[order].size]; };
  const std::size_t order = occupied_from(sizes_[size_of(bytes)].order);
  if (order == ascending_.size()) return none;
  const Size& size = size_at(order);
  const Index index = size.places[size.first].index;
  if (index != last) return index;
  if (size.first + 1 < size.places.size()) return size.places[size.first + 1].index;
  const std::size_t larger = occupied_from(order + 1);
  if (larger == ascending_.size()) return last;
  return size_at(larger).places[size_at(larger).first].index;
}

// Returns the index of a size among sizes_, to which it adds new ones.
std::uint32_t CachingAllocator::FreePieces::size_of(std::int64_t bytes) {
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio [Knuth, 6.4]
  const auto hash = (static_cast<std::uint64_t>(bytes / granule) * spread) >> 56;
  Entry& recent = recent_[hash];
  if (recent.bytes == bytes) return recent.size;
  const auto find = [&] {
    return std::lower_bound(ascending_.begin(), ascending_.end(), bytes,
                            [](const Entry& x, std::int64_t y) { return x.bytes < y; });
  };
  auto at = find();
  if (at == ascending_.end() || at->bytes != bytes) {
    if (ascending_.size() >= most_vacant && unused_.empty()) {
      drop_vacant();
      at = find();
    }
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(sizes_.size()));
      sizes_.emplace_back();
    }
    sizes_[unused_.back()].bytes = bytes;
    at = ascending_.insert(at, {bytes, unused_.back()});
    unused_.pop_back();
    number_sizes(static_cast<std::size_t>(at - ascending_.begin()));
  }
  return (recent = *at).size;
}

std::size_t CachingAllocator::FreePieces::occupied_from(std::size_t order) const {
  std::size_t word = order / word_bits;
  if (word >= occupied_.size()) return ascending_.size();
  std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (order % word_bits));
  while (bits == 0) {
    if (++word == occupied_.size()) return ascending_.size();
    bits = occupied_[word];
  }
  return word * word_bits + static_cast<std::size_t>(std::countr_zero(bits));
}

void CachingAllocator::FreePieces::set_occupied(std::size_t order, bool occupied) {
  const std::uint64_t bit = std::uint64_t{1} << (order % word_bits);
  std::uint64_t& word = occupied_[order / word_bits];
  word = occupied ? word | bit : word & ~bit;
}

void CachingAllocator::FreePieces::drop_vacant() {
  const auto vacant = std::stable_partition(ascending_.begin(), ascending_.end(),
                                            [&](const Entry& it) { return !sizes_[it.size].empty(); });
  for (auto it = vacant; it != ascending_.end(); ++it) unused_.push_back(it->size);
  ascending_.erase(vacant, ascending_.end());
  occupied_.clear();
  number_sizes(0);
  recent_ = {};
}

void CachingAllocator::FreePieces::number_sizes(std::size_t from) {
  occupied_.resize(ascending_.size() / word_bits + 1);
  for (std::size_t order = from; order < ascending_.size(); ++order) {
    Size& size = sizes_[ascending_[order].size];
    size.order = order;
    set_occupied(order, !size.empty());
  }
}

CachingAllocator::Pool& CachingAllocator::pool(std::size_t number) {
  while (pools_.size() <= number) {
    pools_.push_back({.free = {}, .end = std::int64_t(pools_.size()) * pool_span, .segments = {}});
  }
  return pools_[number];
}

std::int64_t CachingAllocator::block_bytes(Bytes tensor) {
  EXPECTS(tensor >= Bytes(0));
  const auto asked = static_cast<std::int64_t>(std::min(std::ceil(tensor.count()), most_bytes));
  return std::max(granule, rounded_up(asked, granule));
}

bool CachingAllocator::is_small(std::int64_t block) { return block <= largest_small; }

CachingAllocator::Block CachingAllocator::allocate_block(std::int64_t size, int stream) {
  EXPECTS(stream >= 0 && size >= granule);
  const bool small = is_small(size);
  const std::size_t number = 2 * static_cast<std::size_t>(stream) + (small ? 1 : 0);
  // The piece at the end of a growing segment counts at its largest possible size, so any other piece that
  // fits is taken first.
  Pool& open = pool(number);
  Index index = open.free.smallest(size, expandable_ ? open.last : none);
  if (index == none) index = take_segment(number, size);
  FreePieces& free = open.free;
  free.remove(at(index));
  at(index).used = true;
  const std::int64_t rest = at(index).bytes - size;
  if (small || expandable_ ? rest >= granule : rest > largest_small) {
    const Index after = at(index).after;
    at(index).bytes = size;
    const Index left = added({.address = at(index).address + size, .bytes = rest, .pool = at(index).pool});
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
  } else if (limit_ > 0 && reserved_ + taken > limit_) {
    give_back_free_segments();
    out_of_memory_ = out_of_memory_ || reserved_ + taken > limit_;
  }
  const Index index =
      added({.address = pool.end, .bytes = taken, .pool = static_cast<std::uint32_t>(number), .used = true});
  if (expandable_ && pool.last != none) {
    link(pool.last, index);
  } else {
    pool.segments.push_back(index);
  }
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
    std::erase(pools_[piece.pool].segments, index);
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

// Calls visit(number) for each number of the layout until it returns false. Returns whether it never did.
template <class Visit>
bool CachingAllocator::visit_layout(const Visit& visit) const {
  for (const Pool& pool : pools_) {
    if (!visit(pool.end) || !visit(std::ssize(pool.segments))) return false;
    for (const Index first : pool.segments) {
      for (Index index = first; index != none; index = at(index).after) {
        const Piece& piece = at(index);
        if (!visit(piece.used ? piece.address : -piece.address - 1) || !visit(piece.bytes)) return false;
      }
    }
  }
  return true;
}

CachingAllocator::Layout CachingAllocator::layout() const {
  Layout layout;
  visit_layout([&](std::int64_t number) {
    layout.push_back(number);
    return true;
  });
  return layout;
}

bool CachingAllocator::has_layout(const Layout& other) const {
  auto next = other.begin();
  return visit_layout([&](std::int64_t number) { return next != other.end() && *next++ == number; }) &&
         next == other.end();
}

}  // namespace headroom

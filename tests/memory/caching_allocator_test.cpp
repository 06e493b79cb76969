// What PyTorch's allocator holds, against its rules worked out by hand.
#include "headroom/memory/caching_allocator.hpp"

#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace headroom {
namespace {

constexpr int here = 0;
constexpr int elsewhere = 1;

std::int64_t new_address(CachingAllocator& allocator, Bytes bytes) {
  return allocator.address(allocator.allocate(bytes, here));
}

TEST_CASE(
    "allocator: small tensors share segments of 2 MiB, larger ones of 20, and those of 10 MiB have their "
    "own") {
  CachingAllocator small(false);
  small.allocate(1_B, here);
  CHECK(small.reserved() == 2_MiB);
  CHECK(small.allocated() == 512_B);
  small.allocate(1_MiB, here);
  CHECK(small.reserved() == 2_MiB);
  CachingAllocator large(false);
  large.allocate(1_MiB + 1_B, here);
  CHECK(large.reserved() == 20_MiB);
  large.allocate(18_MiB, here);
  CHECK(large.reserved() == 20_MiB);
  large.allocate(11_MiB, here);
  CHECK(large.reserved() == 32_MiB);
}

TEST_CASE("allocator: a tensor is served from the smallest free block that has room") {
  CachingAllocator allocator(false);
  const auto larger = allocator.allocate(100_MiB, here);
  const auto smaller = allocator.allocate(60_MiB, here);
  const auto address = allocator.address(smaller);
  allocator.free(larger);
  allocator.free(smaller);
  CHECK(new_address(allocator, 50_MiB) == address);
  CHECK(allocator.reserved() == 160_MiB);
  CHECK(allocator.most_allocated() == 160_MiB);
}

TEST_CASE("allocator: no larger tensor fits into a block that was freed, unless segments grow") {
  for (const bool expandable : {false, true}) {
    CachingAllocator allocator(expandable);
    allocator.free(allocator.allocate(40_MiB, here));
    allocator.allocate(60_MiB, here);
    CHECK(allocator.reserved() == (expandable ? 60_MiB : 100_MiB));
  }
}

TEST_CASE(
    "allocator: what stands at the end of a segment that grows is taken last, and any rest is cut off") {
  CachingAllocator allocator(true);
  const auto hole = allocator.allocate(40_MiB, here);
  allocator.allocate(20_MiB, here);
  allocator.free(allocator.allocate(20_MiB, here));
  const auto address = allocator.address(hole);
  allocator.free(hole);
  CHECK(new_address(allocator, 10_MiB) == address);  // 40 MiB, for the 20 at the end can become more
  CHECK(new_address(allocator, 30_MiB - 512_B) == address + (10 << 20));
  CHECK(allocator.allocated() == 60_MiB - 512_B);
}

TEST_CASE("allocator: a hole between two tensors stays one where segments grow") {
  CachingAllocator allocator(true);
  const auto first = allocator.allocate(40_MiB, here);
  const auto address = allocator.address(first);
  allocator.allocate(20_MiB, here);
  allocator.free(first);
  allocator.allocate(60_MiB, here);
  CHECK(allocator.reserved() == 120_MiB);
  CHECK(new_address(allocator, 40_MiB) == address);
}

TEST_CASE("allocator: what a stream freed serves no other stream") {
  CachingAllocator allocator(false);
  allocator.free(allocator.allocate(64_MiB, here));
  allocator.allocate(64_MiB, elsewhere);
  CHECK(allocator.reserved() == 128_MiB);
  CHECK(allocator.allocated() == 64_MiB);
}

TEST_CASE("allocator: parts of a segment are joined when they are free again") {
  CachingAllocator allocator(false);
  const auto first = allocator.allocate(4_MiB, here);
  const auto second = allocator.allocate(4_MiB, here);
  const auto address = allocator.address(first);
  allocator.free(first);
  allocator.free(second);
  CHECK(new_address(allocator, 9_MiB) == address);
  CHECK(allocator.reserved() == 20_MiB);
}

TEST_CASE("allocator: tensors of any order lie apart, and what is held does not shrink") {
  rc::check("no two overlap", [](bool expandable, std::uint32_t seed) {
    std::minstd_rand draw(seed);
    const auto below = [&](std::int64_t most) {
      return std::uniform_int_distribution(std::int64_t{0}, most - 1)(draw);
    };
    CachingAllocator allocator(expandable);
    struct Held {
      CachingAllocator::Block block = 0;
      std::int64_t bytes = 0;
    };
    std::map<std::int64_t, Held> alive;  // by address
    Bytes held;
    for (int step = 0; step < 60; ++step) {
      if (!alive.empty() && below(2) == 0) {
        const auto gone = std::next(alive.begin(), below(std::ssize(alive)));
        allocator.free(gone->second.block);
        alive.erase(gone);
      } else {
        const std::int64_t bytes = 1 + below(std::int64_t{1} << (10 + below(17)));
        const auto block = allocator.allocate(Bytes(static_cast<double>(bytes)), static_cast<int>(below(3)));
        const std::int64_t address = allocator.address(block);
        const auto after = alive.upper_bound(address);
        const bool apart_from_next = after == alive.end() || address + bytes <= after->first;
        const bool apart_from_last =
            after == alive.begin() || std::prev(after)->first + std::prev(after)->second.bytes <= address;
        RC_ASSERT(apart_from_next);
        RC_ASSERT(apart_from_last);
        alive[address] = {block, bytes};
      }
      RC_ASSERT(allocator.reserved() >= held);
      RC_ASSERT(allocator.reserved() >= allocator.allocated());
      held = allocator.reserved();
    }
    for (const auto& [address, tensor] : alive) allocator.free(tensor.block);
    RC_ASSERT(allocator.allocated() == Bytes(0));
  });
}

TEST_CASE("allocator: within a limit, segments that are free go back before it runs out") {
  CachingAllocator allocator(100_MiB);
  const auto first = allocator.allocate(60_MiB, here);
  allocator.free(first);
  const auto second = allocator.allocate(80_MiB, here);  // has no room beside the cached 60 MiB
  CHECK_FALSE(allocator.out_of_memory());
  CHECK(allocator.reserved() == 80_MiB);
  allocator.free(second);
  allocator.allocate(30_MiB, here);  // a part of the 80 MiB, which then cannot go back
  CHECK(allocator.reserved() == 80_MiB);
  allocator.allocate(60_MiB, here);
  CHECK(allocator.out_of_memory());
}

TEST_CASE("allocator: layouts are equal where all blocks and free pieces lie alike") {
  for (const bool expandable : {false, true}) {
    CachingAllocator allocator(expandable);
    allocator.allocate(30_MiB, here);
    const auto second = allocator.allocate(40_MiB, here);
    const CachingAllocator::Layout before = allocator.layout();
    CHECK(allocator.has_layout(before));
    allocator.free(second);
    CHECK_FALSE(allocator.has_layout(before));
    allocator.free(allocator.allocate(8_MiB, here));
    allocator.allocate(40_MiB, here);  // in the same place, though the pieces have other numbers
    CHECK(allocator.has_layout(before));
    allocator.allocate(1_KiB, elsewhere);
    CHECK_FALSE(allocator.has_layout(before));
    CHECK(allocator.layout() != before);
  }
}

TEST_CASE("allocator: the smallest block that has room is found among more sizes than it remembers") {
  CachingAllocator allocator(false);
  std::vector<CachingAllocator::Block> kept;
  std::map<std::int64_t, std::int64_t> address_of;  // of free segments, by size in MiB
  for (std::int64_t i = 0; i < 1200; ++i) {
    const std::int64_t size = 12 + 2 * (i * 7 % 1200);
    const auto block = allocator.allocate(Bytes(static_cast<double>(size) * mebi), here);
    address_of[size] = allocator.address(block);
    kept.push_back(block);
  }
  for (const auto block : kept) allocator.free(block);
  const Bytes reserved = allocator.reserved();
  for (const std::int64_t size : {12, 1000, 14, 2400, 998, 1002}) {
    const auto larger = address_of.lower_bound(size);
    const auto block = allocator.allocate(Bytes(static_cast<double>(size) * mebi - 512), here);
    CHECK(allocator.address(block) == larger->second);
    address_of.erase(larger);
  }
  CHECK(allocator.reserved() == reserved);
}

TEST_CASE("allocator: sizes beyond any device do not overflow") {
  CachingAllocator allocator(false);
  for (int i = 0; i < 4; ++i) allocator.allocate(Bytes(1e300), here);
  CHECK(allocator.reserved() >= Bytes(4e14));
}

}  // namespace
}  // namespace headroom

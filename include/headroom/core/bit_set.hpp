// A set of small numbers, one bit each. Its bounded capacity may exceed a machine word. Sets are ordered as
// the binary numbers that their bits form, so that they can be sorted.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "headroom/core/expects.hpp"

namespace headroom {

template <std::size_t Capacity>
class BitSet {
 public:
  constexpr BitSet() = default;
  // Creates a set from its bits.
  constexpr BitSet(std::uint64_t bits) { words_[0] = bits; }  // NOLINT(google-explicit-constructor)

  // Returns the set of the first `count` numbers: 0, 1, ...
  static constexpr BitSet first(std::size_t count) {
    BitSet set;
    for (std::size_t i = 0; i < count; ++i) set.insert(i);
    return set;
  }

  constexpr void insert(std::size_t i) {
    EXPECTS(i < Capacity);
    words_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  [[nodiscard]] constexpr bool contains(std::size_t i) const {
    return i < Capacity && (words_[i / 64] >> (i % 64) & 1) != 0;
  }
  [[nodiscard]] constexpr int size() const {
    int count = 0;
    for (const std::uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  // Returns the smallest number. Expects a set that is not empty.
  [[nodiscard]] constexpr int lowest() const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] != 0) return static_cast<int>(64 * i) + std::countr_zero(words_[i]);
    }
    EXPECTS(!"the set is not empty");
    return 0;
  }
  // Returns the largest number. Expects a set that is not empty.
  [[nodiscard]] constexpr int highest() const {
    for (std::size_t i = words_.size(); i-- > 0;) {
      if (words_[i] != 0) return static_cast<int>(64 * i) + 63 - std::countl_zero(words_[i]);
    }
    EXPECTS(!"the set is not empty");
    return 0;
  }

  constexpr BitSet& operator|=(const BitSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  constexpr BitSet& operator&=(const BitSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  friend constexpr BitSet operator|(BitSet x, const BitSet& y) { return x |= y; }
  friend constexpr BitSet operator&(BitSet x, const BitSet& y) { return x &= y; }
  // Returns all numbers within the set's words that are not in the set. Meant to be intersected, since words
  // may exceed the capacity.
  friend constexpr BitSet operator~(BitSet x) {
    for (std::uint64_t& word : x.words_) word = ~word;
    return x;
  }

  friend constexpr bool operator==(const BitSet&, const BitSet&) = default;
  friend constexpr std::strong_ordering operator<=>(const BitSet& x, const BitSet& y) {
    for (std::size_t i = x.words_.size(); i-- > 0;) {
      if (x.words_[i] != y.words_[i]) return x.words_[i] <=> y.words_[i];
    }
    return std::strong_ordering::equal;
  }

 private:
  std::array<std::uint64_t, (Capacity + 63) / 64> words_{};
};

}  // namespace headroom

// A vector of bounded size without allocation, so that tables can be constants. Expects no more items than
// its capacity.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "headroom/core/expects.hpp"

namespace headroom {

template <class T, std::size_t Capacity>
class FixedVector {
 public:
  constexpr FixedVector() = default;
  constexpr FixedVector(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }

  constexpr void push_back(const T& item) {
    EXPECTS(size_ < Capacity);
    items_[size_++] = item;
  }
  constexpr void clear() { size_ = 0; }
  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }
  [[nodiscard]] constexpr const T* begin() const { return items_.data(); }
  [[nodiscard]] constexpr const T* end() const { return items_.data() + size_; }
  [[nodiscard]] constexpr T* begin() { return items_.data(); }
  [[nodiscard]] constexpr T* end() { return items_.data() + size_; }
  [[nodiscard]] constexpr const T& operator[](std::size_t i) const {
    EXPECTS(i < size_);
    return items_[i];
  }
  [[nodiscard]] constexpr T& operator[](std::size_t i) {
    EXPECTS(i < size_);
    return items_[i];
  }
  [[nodiscard]] constexpr bool contains(const T& item) const {
    for (const T& other : *this) {
      if (other == item) return true;
    }
    return false;
  }

  friend constexpr bool operator==(const FixedVector& x, const FixedVector& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

 private:
  std::array<T, Capacity> items_{};
  std::size_t size_ = 0;
};

}  // namespace headroom

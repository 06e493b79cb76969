// A text of bounded length that is put together at compile time. Overflow is our bug.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "headroom/core/expects.hpp"

namespace headroom {

template <std::size_t Capacity>
class FixedText {
 public:
  constexpr FixedText& operator+=(std::string_view text) {
    EXPECTS(size_ + text.size() <= Capacity);
    for (const char character : text) characters_[size_++] = character;
    return *this;
  }
  [[nodiscard]] constexpr std::string_view view() const { return {characters_.data(), size_}; }

 private:
  std::array<char, Capacity> characters_{};
  std::size_t size_ = 0;
};

}  // namespace headroom

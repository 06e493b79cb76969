// Membership of a value in a list.
#pragma once

#include <algorithm>

namespace headroom {

constexpr bool contains(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace headroom

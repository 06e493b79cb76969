// Joins the items of a list for a message: texts, or the names of enumerators.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "headroom/core/names.hpp"

namespace headroom {

template <class Range>
std::string joined(const Range& parts, std::string_view between = ", ") {
  std::string list;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) list += between;
    first = false;
    if constexpr (std::is_convertible_v<decltype(part), std::string_view>) {
      list += std::string_view(part);
    } else {
      list += name_of(part);
    }
  }
  return list;
}

}  // namespace headroom

// A value with its origin and its source.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "headroom/core/names.hpp"

namespace headroom {

// Origin of a number.
// exact: counted or specified. calibrated: fitted to named samples. assumed: neither, and shown as assumed.
enum class Origin : std::uint8_t { exact, calibrated, assumed };

template <>
inline constexpr std::array<Spelling<Origin>, 3> spellings<Origin>{{
    {Origin::exact, "exact"},
    {Origin::calibrated, "calibrated"},
    {Origin::assumed, "assumed"},
}};

template <class T>
struct Sourced {
  T value{};
  Origin origin = Origin::assumed;
  std::string source;
  friend bool operator==(const Sourced&, const Sourced&) = default;
};

}  // namespace headroom

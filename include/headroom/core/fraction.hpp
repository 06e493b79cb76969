// A fraction that a user states as a number.
#pragma once

#include <compare>

namespace headroom {

// A number from 0 to 1.
struct Fraction {
  double value = 0;
  friend auto operator<=>(const Fraction&, const Fraction&) = default;
};

}  // namespace headroom

#include "harness/elements.hpp"

#include <cmath>

#include <doctest/doctest.h>

namespace headroom::harness {

TEST_CASE("elements: even in [-1, 1), and dropout keeps nine of ten") {
  double sum = 0;
  double squares = 0;
  int kept = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double x = static_cast<double>(element(static_cast<std::uint64_t>(i), 3));
    REQUIRE(x >= -1);
    REQUIRE(x < 1);
    sum += x;
    squares += x * x;
    kept += keeps(static_cast<std::uint64_t>(i), 5) ? 1 : 0;
  }
  CHECK(std::abs(sum / count) < 0.01);
  CHECK(squares / count == doctest::Approx(1.0 / 3).epsilon(0.01));
  CHECK(kept / double(count) == doctest::Approx(0.9).epsilon(0.01));
}

}  // namespace headroom::harness

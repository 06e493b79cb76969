#include "headroom/expr/rational.hpp"

#include <cstdint>

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace headroom {
namespace {

Rational any_rational() { return {*rc::gen::inRange(-99, 100), *rc::gen::inRange(1, 100)}; }

}  // namespace

TEST_CASE("rational: in lowest terms with a positive denominator") {
  static_assert(Rational(6, 4) == Rational(3, 2));
  static_assert(Rational(6, -4) == Rational(-3, 2));
  static_assert(Rational(-6, -4) == Rational(3, 2));
  static_assert(Rational(0, -7) == Rational(0));
  static_assert(Rational(6, -4).numerator() == -3 && Rational(6, -4).denominator() == 2);
}

TEST_CASE("rational: arithmetic") {
  static_assert(Rational(1, 6) + Rational(1, 10) == Rational(4, 15));
  static_assert(Rational(1, 6) - Rational(1, 10) == Rational(1, 15));
  static_assert(Rational(2, 3) * Rational(9, 4) == Rational(3, 2));
  static_assert(Rational(2, 3) / Rational(-4, 9) == Rational(-3, 2));
  static_assert(-Rational(2, 3) == Rational(-2, 3));
}

TEST_CASE("rational: a product overflows only if its lowest terms do") {
  constexpr std::int64_t large = INT64_MAX;
  static_assert(Rational(large, 3) * Rational(3, large) == Rational(1));
  static_assert(Rational(large) * Rational(1, large) == Rational(1));
}

TEST_CASE("rational: the laws of a field") {
  CHECK(rc::check([] {
    const Rational x = any_rational();
    const Rational y = any_rational();
    const Rational z = any_rational();
    RC_ASSERT(x + y == y + x);
    RC_ASSERT(x * y == y * x);
    RC_ASSERT((x + y) + z == x + (y + z));
    RC_ASSERT((x * y) * z == x * (y * z));
    RC_ASSERT(x * (y + z) == x * y + x * z);
    RC_ASSERT(x - x == Rational(0));
    if (y.numerator() != 0) RC_ASSERT(x / y * y == x);
  }));
}

}  // namespace headroom

// Exact fractions, the coefficients of expressions. Overflow of 64 bits breaks an EXPECTS and never gives a
// wrong value.
#pragma once

#include <cstdint>
#include <numeric>

#include "headroom/core/expects.hpp"

namespace headroom {

// A fraction in lowest terms with a positive denominator, so that == compares values.
class Rational {
 public:
  constexpr Rational() = default;
  constexpr Rational(std::int64_t whole) : numerator_(whole) {}  // NOLINT(google-explicit-constructor): 2 * s
  constexpr Rational(std::int64_t numerator, std::int64_t denominator) {
    EXPECTS(denominator != 0);
    const std::int64_t divisor = std::gcd(numerator, denominator) * (denominator < 0 ? -1 : 1);
    numerator_ = numerator / divisor;
    denominator_ = denominator / divisor;
  }

  [[nodiscard]] constexpr std::int64_t numerator() const { return numerator_; }
  [[nodiscard]] constexpr std::int64_t denominator() const { return denominator_; }

  friend constexpr bool operator==(Rational, Rational) = default;

  friend constexpr Rational operator+(Rational x, Rational y) {
    return {sum(product(x.numerator_, y.denominator_), product(y.numerator_, x.denominator_)),
            product(x.denominator_, y.denominator_)};
  }
  friend constexpr Rational operator-(Rational x) { return {product(x.numerator_, -1), x.denominator_}; }
  friend constexpr Rational operator-(Rational x, Rational y) { return x + -y; }
  // Reduces crosswise first, so that a product overflows only if its lowest terms do.
  friend constexpr Rational operator*(Rational x, Rational y) {
    const Rational left(x.numerator_, y.denominator_);
    const Rational right(y.numerator_, x.denominator_);
    return {product(left.numerator_, right.numerator_), product(left.denominator_, right.denominator_)};
  }
  friend constexpr Rational operator/(Rational x, Rational y) {
    EXPECTS(y.numerator_ != 0);
    return x * Rational(y.denominator_, y.numerator_);
  }

 private:
  static constexpr std::int64_t product(std::int64_t x, std::int64_t y) {
    std::int64_t result = 0;
    EXPECTS(!__builtin_mul_overflow(x, y, &result));
    return result;
  }
  static constexpr std::int64_t sum(std::int64_t x, std::int64_t y) {
    std::int64_t result = 0;
    EXPECTS(!__builtin_add_overflow(x, y, &result));
    return result;
  }

  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
};

}  // namespace headroom

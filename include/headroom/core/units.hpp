// Quantities with a dimension: bytes, floating-point operations, seconds and their rates.
//
// A quantity is a double in base units (bytes, FLOPs, seconds). Byte counts below 2^53 are exact, so they may
// be compared with ==. Adding bytes to seconds does not compile; dividing bytes by seconds gives a rate.
#pragma once

#include <compare>

namespace headroom {

// A quantity with the given exponents of bytes, floating-point operations and seconds.
template <int ByteExponent, int FlopExponent, int SecondExponent>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base_units) : value_(base_units) {}

  // Returns the number in base units.
  [[nodiscard]] constexpr double count() const { return value_; }

  friend constexpr bool operator==(Quantity, Quantity) = default;
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

  friend constexpr Quantity operator+(Quantity x, Quantity y) { return Quantity(x.value_ + y.value_); }
  friend constexpr Quantity operator-(Quantity x, Quantity y) { return Quantity(x.value_ - y.value_); }
  friend constexpr Quantity operator*(Quantity x, double k) { return Quantity(x.value_ * k); }
  friend constexpr Quantity operator*(double k, Quantity x) { return x * k; }
  friend constexpr Quantity operator/(Quantity x, double k) { return Quantity(x.value_ / k); }
  constexpr Quantity& operator+=(Quantity y) { return *this = *this + y; }
  constexpr Quantity& operator-=(Quantity y) { return *this = *this - y; }

 private:
  double value_ = 0;
};

template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr auto operator*(Quantity<B1, F1, S1> x, Quantity<B2, F2, S2> y) {
  return Quantity<B1 + B2, F1 + F2, S1 + S2>(x.count() * y.count());
}

// Returns the ratio: a plain number for two like quantities, else a quantity.
template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr auto operator/(Quantity<B1, F1, S1> x, Quantity<B2, F2, S2> y) {
  if constexpr (B1 == B2 && F1 == F2 && S1 == S2) {
    return x.count() / y.count();
  } else {
    return Quantity<B1 - B2, F1 - F2, S1 - S2>(x.count() / y.count());
  }
}

using Bytes = Quantity<1, 0, 0>;
using Flops = Quantity<0, 1, 0>;
using Seconds = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, 0, -1>;
using FlopsPerSecond = Quantity<0, 1, -1>;

// Power. Energy has no type of its own, because it appears only in kilowatt-hours.
class Watts {
 public:
  constexpr Watts() = default;
  constexpr explicit Watts(double watts) : value_(watts) {}
  [[nodiscard]] constexpr double count() const { return value_; }
  friend constexpr bool operator==(Watts, Watts) = default;
  friend constexpr auto operator<=>(Watts, Watts) = default;

 private:
  double value_ = 0;
};

inline constexpr double kibi = 1024;
inline constexpr double mebi = kibi * kibi;
inline constexpr double gibi = kibi * mebi;

// GiB is 2^30 bytes, GB is 10^9: an "80 GB" A100 holds 80 GiB.
inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<double>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(static_cast<double>(n) * kibi); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(static_cast<double>(n) * mebi); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes(static_cast<double>(n) * gibi); }
}  // namespace literals

}  // namespace headroom

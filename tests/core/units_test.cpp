#include "headroom/core/units.hpp"

#include <type_traits>

#include <doctest/doctest.h>

namespace headroom {

TEST_CASE("units: like quantities add, subtract and compare") {
  static_assert(1_KiB + 24_B == Bytes(1048));
  static_assert(1_KiB - 24_B == Bytes(1000));
  static_assert(1_B < 1_KiB && 1_KiB < 1_MiB && 1_MiB < 1_GiB);
  static_assert(Bytes() == 0_B);
}

TEST_CASE("units: a quantity scales by a number, from both sides") {
  static_assert(3 * 2_B == 6_B);
  static_assert(2_B * 3 == 6_B);
  static_assert(6_B / 3 == 2_B);
}

TEST_CASE("units: the ratio of like quantities is a number") {
  static_assert(std::is_same_v<decltype(1_GiB / 1_B), double>);
  static_assert(1_GiB / 1_MiB == 1024);
}

TEST_CASE("units: dimensions multiply and divide") {
  static_assert(std::is_same_v<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
  static_assert(std::is_same_v<decltype(BytesPerSecond(1) * Seconds(1)), Bytes>);
  static_assert(std::is_same_v<decltype(Flops(1) / FlopsPerSecond(1)), Seconds>);
  static_assert(Flops(624e12) / FlopsPerSecond(312e12) == Seconds(2));
  static_assert(Bytes(600) / BytesPerSecond(300) == Seconds(2));
}

TEST_CASE("units: GiB is 2^30 bytes, an 80 GB card holds 80 of them") {
  static_assert(80_GiB == Bytes(85'899'345'920.0));
  static_assert(1_GiB == 1024 * 1_MiB && 1_MiB == 1024 * 1_KiB && 1_KiB == 1024_B);
}

TEST_CASE("units: bytes below 2^53 are exact") {
  static_assert(Bytes(9'007'199'254'740'991.0) - Bytes(9'007'199'254'740'990.0) == 1_B);
}

TEST_CASE("units: accumulating") {
  Bytes sum;
  sum += 3_B;
  sum -= 1_B;
  CHECK(sum == 2_B);
}

}  // namespace headroom

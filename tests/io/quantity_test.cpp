#include "headroom/io/quantity.hpp"

#include <cmath>

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace headroom {
namespace {

template <class T>
std::string rule(const Parsed<T>& parsed) {
  return std::holds_alternative<T>(parsed) ? std::string() : std::get<std::string>(parsed);
}

}  // namespace

TEST_CASE("quantity: 80 GiB is 80 x 2^30 bytes and 80 GB is 80 x 10^9") {
  CHECK(std::get<Bytes>(parse_bytes("80 GiB")) == 80_GiB);
  CHECK(std::get<Bytes>(parse_bytes("80 GB")) == Bytes(80e9));
  CHECK(std::get<Bytes>(parse_bytes("8.125 MiB")) == 8519680_B);
}

TEST_CASE("quantity: GB of a GPU's memory are GiB, as vendors count them, and are written so") {
  CHECK(std::get<Bytes>(parse_device_memory("80 GB")) == 80_GiB);
  CHECK(std::get<Bytes>(parse_device_memory("80 GiB")) == 80_GiB);
  CHECK(std::get<Bytes>(parse_device_memory("81559 MB")) == 81559_MiB);
  CHECK(std::get<Bytes>(parse_device_memory("0.5 TB")) == 512_GiB);
  CHECK(to_text(80_GiB, DeviceMemory{}) == "80 GiB");
  CHECK(std::get<Bytes>(parse_device_memory(to_text(Bytes(80e9), DeviceMemory{}))) == Bytes(80e9));
  CHECK(rule(parse_device_memory("80 Gb")).starts_with("unknown unit 'Gb' (did you mean 'GB'?)"));
}

TEST_CASE("quantity: 300 GB/s, 10 us and 312 TFLOP/s") {
  CHECK(std::get<BytesPerSecond>(parse_bytes_per_second("300 GB/s")) == BytesPerSecond(300e9));
  CHECK(std::get<Seconds>(parse_seconds("10 us")) == Seconds(1e-5));
  CHECK(std::get<FlopsPerSecond>(parse_flops_per_second("312 TFLOP/s")) == FlopsPerSecond(312e12));
}

TEST_CASE("quantity: the space before the unit and around the text is optional") {
  CHECK(std::get<Bytes>(parse_bytes("80GiB")) == 80_GiB);
  CHECK(std::get<Bytes>(parse_bytes("  80   GiB ")) == 80_GiB);
}

TEST_CASE("quantity: a number without a unit") {
  CHECK(rule(parse_bytes("80")) ==
        "needs a unit, one of TiB, TB, GiB, GB, MiB, MB, KiB, KB, B (found \"80\")");
}

TEST_CASE("quantity: a misspelt unit suggests the nearest") {
  CHECK(rule(parse_bytes("80 gib")) ==
        "unknown unit 'gib' (did you mean 'GiB'?), must be one of TiB, TB, GiB, GB, MiB, MB, KiB, KB, B "
        "(found \"80 gib\")");
}

TEST_CASE("quantity: a unit of another dimension") {
  CHECK(rule(parse_seconds("10 GB")) == "unknown unit 'GB', must be one of s, ms, us, ns (found \"10 GB\")");
}

TEST_CASE("quantity: bits are not bytes") {
  CHECK(rule(parse_bytes_per_second("200 Gb/s"))
            .starts_with("unknown unit 'Gb/s' (in bits, 8 of which make a byte)"));
}

TEST_CASE("quantity: NaN is refused") {
  CHECK(rule(parse_bytes("nan GiB")) == "must be finite (found \"nan GiB\")");
}

TEST_CASE("quantity: infinity is refused") {
  CHECK(rule(parse_bytes("inf B")) == "must be finite (found \"inf B\")");
}

TEST_CASE("quantity: negative is refused") {
  CHECK(rule(parse_bytes("-80 GiB")) == "must not be negative (found \"-80 GiB\")");
}

TEST_CASE("quantity: out of range is refused") {
  CHECK(rule(parse_bytes("1e999 GiB")) == "number out of range (found \"1e999 GiB\")");
  CHECK(rule(parse_bytes("1e308 GiB")) == "number out of range (found \"1e308 GiB\")");
}

TEST_CASE("quantity: a unit without a number") {
  CHECK(rule(parse_seconds("us")) == "must be a number and a unit (s, ms, us, ns) (found \"us\")");
}

TEST_CASE("quantity: printed in the largest unit that stays readable") {
  CHECK(to_text(80_GiB) == "80 GiB");
  CHECK(to_text(8519680_B) == "8.125 MiB");
  CHECK(to_text(Bytes(80e9)) == "80 GB");
  CHECK(to_text(8519681_B) == "8.519681 MB");
  CHECK(to_text(0_B) == "0 B");
  CHECK(to_text(Seconds(1e-5)) == "10 us");
  CHECK(to_text(Seconds(90)) == "90 s");
  CHECK(to_text(BytesPerSecond(300e9)) == "300 GB/s");
  CHECK(to_text(FlopsPerSecond(312e12)) == "312 TFLOP/s");
  CHECK(to_text(std::get<Watts>(parse_watts("0.7 kW"))) == "700 W");
  CHECK(to_text(Watts(1000)) == "1 kW");
}

TEST_CASE("quantity: printing and parsing give the same value back") {
  CHECK(rc::check("bytes", [] {
    const Bytes bytes(static_cast<double>(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 53)));
    RC_ASSERT(std::get<Bytes>(parse_bytes(to_text(bytes))) == bytes);
  }));
  CHECK(rc::check("seconds", [] {
    const Seconds seconds(std::abs(*rc::gen::arbitrary<double>()));
    RC_ASSERT(std::get<Seconds>(parse_seconds(to_text(seconds))) == seconds);
  }));
}

}  // namespace headroom

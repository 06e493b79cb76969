// Numbers read by std::strtod are those that std::from_chars reads.
#include "headroom/core/decimal.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using headroom::decimal_from_chars;
using headroom::detail::decimal_by_strtod;

namespace {

using Reader = std::from_chars_result (*)(const char*, const char*, double&);

struct Reading {
  std::ptrdiff_t length;
  std::errc error;
  std::uint64_t bits;  // so that -0 is not 0; of every NaN the same
  friend bool operator==(const Reading&, const Reading&) = default;
};

Reading read_with(Reader reader, std::string_view text) {
  double value = 42;
  const auto [end, error] = reader(text.data(), text.data() + text.size(), value);
  return {end - text.data(), error, std::isnan(value) ? 0 : std::bit_cast<std::uint64_t>(value)};
}

}  // namespace

TEST_CASE("both readers agree on what is a number and what is none") {
  for (const std::string_view text :
       {"",
        "-",
        "+",
        "+1",
        " 1",
        "0",
        "-0",
        "007",
        "1",
        "-1",
        "1.",
        ".5",
        "-.5",
        ".",
        "-.",
        "1.5e",
        "1.5e+",
        "1.5e-",
        "1e5",
        "1E5",
        "1e+5",
        "1e-5",
        "1e05",
        "1e5.5",
        "1.2.3",
        "1,5",
        "1_000",
        "0x10",
        "0x1p3",
        "1k",
        "3 GiB",
        "--1",
        "e5",
        ".e5",
        "inf",
        "-inf",
        "INF",
        "Infinity",
        "infinit",
        "infinityx",
        "nan",
        "-nan",
        "NaN",
        "nan()",
        "nan(7)",
        "nan(x",
        "nan(-)",
        "nan 1",
        "in",
        "n",
        "1e308",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "1e309",
        "-1e309",
        "1e99999999999",
        "0e99999999999",
        "5e-324",
        "4.9e-324",
        "2e-324",
        "1e-400",
        "-1e-400",
        "0e-400",
        "1e-99999999999",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "9007199254740993",
        "0.1",
        "123456789012345678901234567890",
        "8.41",
        "0.30000000000000004",
        "1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070"
        "96330286416"
        "6928879109465555478519404026306574886715058206819089020007083836762738548458177115317644757302700698"
        "55571366959"
        "622842914819860834936475292719074168444365510704342711559699508093042880"}) {
    CAPTURE(text);
    CHECK(read_with(decimal_by_strtod, text) == read_with(decimal_from_chars, text));
  }
}

TEST_CASE("both readers agree on ten thousand texts of the characters of numbers") {
  std::mt19937 random(20240229);
  constexpr std::string_view characters = "0123456789019..--+eEinfatyx( )";
  std::uniform_int_distribution<std::size_t> any(0, characters.size() - 1);
  for (int i = 0; i < 10'000; ++i) {
    std::string text;
    for (std::size_t length = any(random) % 12; text.size() < length;) text += characters[any(random)];
    CAPTURE(text);
    CHECK(read_with(decimal_by_strtod, text) == read_with(decimal_from_chars, text));
  }
}

TEST_CASE("a number is read up to what follows it") {
  double value = 0;
  const std::string_view text = "12.5GiB";
  const auto [end, error] = decimal_by_strtod(text.data(), text.data() + text.size(), value);
  CHECK(value == 12.5);
  CHECK(error == std::errc());
  CHECK(std::string_view(end) == "GiB");
}

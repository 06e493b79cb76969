#include "headroom/core/count_text.hpp"

#include <limits>

#include <doctest/doctest.h>

namespace headroom {
namespace {

TEST_CASE("counts are read as people write them") {
  CHECK(count_of("65536") == 65536);
  CHECK(count_of("64k") == 65536);
  CHECK(count_of("8K") == 8192);
  CHECK(count_of("1M") == 1048576);
  CHECK(count_of("1,000,000") == 1000000);
  CHECK(count_of("12,345") == 12345);
  CHECK(count_of("-3") == -3);
  CHECK(count_of("99999999999999999999") == std::numeric_limits<std::int64_t>::max());
  CHECK(count_of("9999999999999999k") == std::numeric_limits<std::int64_t>::max());
  CHECK(count_of("-99999999999999999999") == std::numeric_limits<std::int64_t>::min());
  CHECK(count_of("-9999999999999999k") == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("what is no whole number is none") {
  for (const char* const text : {"", "k", "1.5k", "8 k", "8kk", "1,00", "1,0000", ",100", "1,,000",
                                 "1000,000", "1e3", "0x10", "8G", "eight"}) {
    CAPTURE(text);
    CHECK(!count_of(text));
  }
}

}  // namespace
}  // namespace headroom

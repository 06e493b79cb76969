#include "headroom/time/streaming.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "time/a100.hpp"

namespace headroom {

using tests::performance;

TEST_CASE("streaming: bandwidth for much, the shortest kernel for little") {
  CHECK(streaming_time(Bytes(1e9), performance()).count() == tests::about(1e9 / (2039e9 * 0.771) + 1.35e-6));
  CHECK(streaming_time(Bytes(1), performance()) == Seconds(4e-6));
}

TEST_CASE("streaming: more bytes never take less time") {
  CHECK(rc::check([] {
    const auto bytes = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
    const auto more = bytes + *rc::gen::inRange<std::int64_t>(0, 1'000'000);
    RC_ASSERT(streaming_time(Bytes(static_cast<double>(more)), performance()) >=
              streaming_time(Bytes(static_cast<double>(bytes)), performance()));
  }));
}

}  // namespace headroom

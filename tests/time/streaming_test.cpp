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

TEST_CASE("flash attention: causal FLOPs at the assumed shares, 2.5 times as many backward") {
  const Flops computed(4e12);
  const Seconds forward = flash_attention_time(FlashPass::forward, computed, Bytes(0), performance());
  const Seconds backward = flash_attention_time(FlashPass::backward, computed, Bytes(0), performance());
  CHECK(forward.count() == tests::about(2e12 / (0.55 * 0.97 * 312e12)).epsilon(0.001));
  CHECK(backward / forward == tests::about(2.5 * 0.55 / 0.45).epsilon(0.001));
}

TEST_CASE("flash attention: short sequences are bound by memory") {
  CHECK(flash_attention_time(FlashPass::forward, Flops(1), Bytes(1e9), performance()) ==
        Seconds(1.35e-6) + Bytes(1e9) / streaming_bandwidth(performance()));
}

}  // namespace headroom

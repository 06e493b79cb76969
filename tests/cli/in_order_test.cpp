// Work on threads, taken in order.
#include "cli/in_order.hpp"

#include <atomic>
#include <stdexcept>

#include <doctest/doctest.h>

namespace headroom::cli {
namespace {

TEST_CASE("results come in order whatever the threads do") {
  for (const std::size_t threads : {1U, 2U, 3U, 8U}) {
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      CAPTURE(threads);
      CAPTURE(count);
      std::int64_t next = 0;
      in_order<std::int64_t>(
          count, threads,
          [](std::size_t, std::int64_t i) {
            if (i % 7 == 0) std::this_thread::yield();
            return i * i;
          },
          [&](std::int64_t i, std::int64_t square) {
            CHECK(i == next++);
            CHECK(square == i * i);
          });
      CHECK(next == count);
    }
  }
}

TEST_CASE("a thread that is ahead waits for results to be taken") {
  constexpr std::int64_t most_ahead = 16 * 2;
  std::atomic<std::int64_t> made = 0;
  std::int64_t furthest = 0;
  in_order<int>(
      500, 2, [&](std::size_t, std::int64_t) { return static_cast<int>(++made); },
      [&](std::int64_t i, int) { furthest = std::max(furthest, made - i); });
  CHECK(furthest <= most_ahead + 2);
}

TEST_CASE("what a thread throws is thrown") {
  for (const std::size_t threads : {1U, 4U}) {
    std::int64_t taken = 0;
    CHECK_THROWS_WITH(in_order<int>(
                          100, threads,
                          [](std::size_t, std::int64_t i) -> int {
                            if (i == 50) throw std::runtime_error("fifty");
                            return 0;
                          },
                          [&](std::int64_t, int) { ++taken; }),
                      "fifty");
    CHECK(taken <= 50);
  }
}

TEST_CASE("what taking throws ends the threads") {
  for (const std::size_t threads : {1U, 4U}) {
    CHECK_THROWS_WITH(in_order<int>(
                          1'000'000'000, threads, [](std::size_t, std::int64_t) { return 0; },
                          [](std::int64_t i, int) {
                            if (i == 10) throw std::runtime_error("full");
                          }),
                      "full");
  }
}

}  // namespace
}  // namespace headroom::cli

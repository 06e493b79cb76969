// Which points of a frontier are the best exchanges of time for memory.
#include "headroom/answer/frontier.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace headroom {
namespace {

FrontierRow row(double peak, double seconds, std::int64_t layers = 0) {
  FrontierRow result;
  result.point = {.recompute = {.layers = layers}, .peak = Bytes(peak), .iteration = Seconds(seconds)};
  result.staged.iteration = Seconds(seconds);
  return result;
}

// Memory falls and time rises along it.
std::vector<FrontierRow> any_front() {
  std::vector<FrontierRow> rows{row(1000, 1)};
  const int more = *rc::gen::inRange(0, 12);
  for (int i = 0; i < more; ++i) {
    const FrontierPoint& last = rows.back().point;
    rows.push_back(
        row(last.peak.count() - *rc::gen::inRange(1, 40), last.iteration.count() + *rc::gen::inRange(1, 40)));
  }
  return rows;
}

TEST_CASE("best exchanges: every next gigabyte costs more than the one before and no point lies below") {
  CHECK(rc::check([] {
    const std::vector<FrontierRow> rows = any_front();
    const std::vector<std::size_t> hull = best_exchanges(rows);
    RC_ASSERT(hull.front() == 0);
    RC_ASSERT(hull.back() == rows.size() - 1);
    const auto price = [&](std::size_t from, std::size_t to) {
      return (rows[to].point.iteration - rows[from].point.iteration).count() /
             (rows[from].point.peak - rows[to].point.peak).count();
    };
    for (std::size_t i = 0; i + 1 < hull.size(); ++i) {
      if (i + 2 < hull.size()) RC_ASSERT(price(hull[i], hull[i + 1]) < price(hull[i + 1], hull[i + 2]));
      for (std::size_t between = hull[i] + 1; between < hull[i + 1]; ++between) {
        RC_ASSERT(price(hull[i], between) >= price(hull[i], hull[i + 1]));
      }
    }
  }));
}

TEST_CASE("best exchanges: points that recompute in some layers only are not among them") {
  CHECK(best_exchanges({row(100, 1), row(90, 1.5, 3), row(80, 4)}) == std::vector<std::size_t>{0, 2});
}

}  // namespace
}  // namespace headroom

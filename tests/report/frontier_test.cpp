// Which points of a frontier a reader is shown, and the picture of all of them.
#include "headroom/report/frontier.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/report/frontier_picture.hpp"

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

TEST_CASE("best exchanges: points that replay in some layers only are not among them") {
  CHECK(best_exchanges({row(100, 1), row(90, 1.5, 3), row(80, 4)}) == std::vector<std::size_t>{0, 2});
}

TEST_CASE("the picture: a budget between two points has the time of the one that needs less") {
  FrontierReport report;
  report.request.model.name = "a<b";
  report.points = {row(30 * gibi, 1), row(20 * gibi, 2), row(10 * gibi, 5)};
  report.budgets = {{.budget = Bytes(25 * gibi), .uniform = {}, .staged = {}}};
  const std::string svg = frontier_picture(report);
  // 10 to 30 GiB over 720 pixels, 1 to 5 seconds over 480.
  CHECK(svg.find("M720.0 480.0V360.0H360.0V0.0H0.0") != std::string::npos);
  CHECK(svg.find("M540.0 0V480") != std::string::npos);
  CHECK(svg.find("a&lt;b") != std::string::npos);
  // One point alone has a scale too.
  report.points.resize(1);
  report.budgets.clear();
  CHECK(frontier_picture(report).find("nan") == std::string::npos);
}

}  // namespace
}  // namespace headroom

// The picture of a frontier's points.
#include "headroom/report/frontier_picture.hpp"

#include <doctest/doctest.h>

namespace headroom {
namespace {

FrontierRow drawn_row(double peak, double seconds, std::int64_t layers = 0) {
  FrontierRow result;
  result.point = {.recompute = {.layers = layers}, .peak = Bytes(peak), .iteration = Seconds(seconds)};
  result.staged.iteration = Seconds(seconds);
  return result;
}

TEST_CASE("the picture: a budget between two points has the time of the one that needs less") {
  FrontierReply report;
  report.request.model.name = "a<b";
  report.points = {drawn_row(30 * gibi, 1), drawn_row(20 * gibi, 2), drawn_row(10 * gibi, 5)};
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

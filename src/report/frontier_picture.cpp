#include "headroom/report/frontier_picture.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/svg.hpp"

namespace headroom {
namespace {

constexpr double width = 720;  // of the plot, in pixels
constexpr double height = 480;
constexpr double margin = 80;  // around it, for scales and title

// 1, 2 or 5 times a power of ten, such that a range holds up to about eight.
double tick_of(double range) {
  constexpr double ticks = 8;
  const double power = std::pow(10, std::floor(std::log10(range / ticks)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (range / (step * power) <= ticks) return step * power;
  }
  return 10 * power;
}

// A linear scale with room at both ends.
struct LinearAxis {
  double least = 0;
  double most = 1;
  double tick = 1;

  static LinearAxis over(double least, double most) {
    const double tick = tick_of(most > least ? most - least : std::max(std::abs(most), 1e-9));
    const double first = std::floor(least / tick) * tick;
    return {first, std::max(std::ceil(most / tick) * tick, first + tick), tick};
  }
  [[nodiscard]] double part(double value) const { return (value - least) / (most - least); }
};

double gib(Bytes bytes) { return bytes.count() / gibi; }

struct Plot {
  LinearAxis memory;
  LinearAxis time;

  [[nodiscard]] double x(Bytes bytes) const { return width * memory.part(gib(bytes)); }
  [[nodiscard]] double y(Seconds seconds) const { return height * (1 - time.part(seconds.count())); }
};

std::string scales(const Plot& plot) {
  std::string svg;
  for (int i = 0; plot.memory.least + i * plot.memory.tick <= plot.memory.most * (1 + 1e-9); ++i) {
    const double value = plot.memory.least + i * plot.memory.tick;
    const double at = width * plot.memory.part(value);
    svg += fmt::format(
        "<path d=\"M{0:.1f} 0V{1:.0f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{2:.0f}\" text-anchor=\"middle\">{3:g}</text>\n",
        at, height, height + 20, value);
  }
  for (int i = 0; plot.time.least + i * plot.time.tick <= plot.time.most * (1 + 1e-9); ++i) {
    const double value = plot.time.least + i * plot.time.tick;
    const double at = height * (1 - plot.time.part(value));
    svg += fmt::format(
        "<path d=\"M0 {0:.1f}H{1:.0f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"-8\" y=\"{2:.1f}\" text-anchor=\"end\">{3:g}</text>\n",
        at, width, at + 4, value);
  }
  svg +=
      fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">peak memory of a GPU, GiB</text>\n",
                  width / 2, height + 48);
  return svg + fmt::format(
                   "<text transform=\"translate(-58 {:.0f}) rotate(-90)\" text-anchor=\"middle\">seconds an "
                   "iteration</text>\n",
                   height / 2);
}

// Steps: a budget between two points has memory for the one that needs less.
std::string steps(const Plot& plot, const FrontierReply& report, bool by_rank, std::string_view color) {
  std::string path;
  for (const auto& [point, staged] : report.points) {
    const double x = plot.x(point.peak);
    const double y = plot.y(by_rank ? staged.iteration : point.iteration);
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format("V{:.1f}H{:.1f}", y, x);
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path, color);
}

}  // namespace

std::string frontier_picture(const FrontierReply& report) {
  EXPECTS(!report.points.empty());
  const FrontierPoint& most = report.points.front().point;
  const FrontierPoint& least = report.points.back().point;
  double slowest = least.iteration.count();
  double fullest = gib(most.peak);
  double emptiest = gib(least.peak);
  for (const auto& [point, best] : report.policies) slowest = std::max(slowest, point.iteration.count());
  for (const FrontierBudget& budget : report.budgets) {
    fullest = std::max(fullest, gib(budget.budget));
    emptiest = std::min(emptiest, gib(budget.budget));
  }
  const Plot plot{.memory = LinearAxis::over(emptiest, fullest),
                  .time = LinearAxis::over(most.iteration.count(), slowest)};
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n"
      "<text x=\"{2:.0f}\" y=\"28\" text-anchor=\"middle\" font-size=\"16\">{3}</text>\n"
      "<g transform=\"translate({4:.0f} {4:.0f})\">\n",
      width + 2 * margin, height + 2 * margin, width / 2 + margin,
      svg::escaped("What to recompute: " + report.request.model.name + " on " + report.request.system.name),
      margin);
  svg += scales(plot);
  for (const FrontierBudget& budget : report.budgets) {
    svg += fmt::format("<path d=\"M{0:.1f} 0V{1:.0f}\" stroke=\"#888\" stroke-dasharray=\"6 4\"/>\n",
                       plot.x(budget.budget), height);
  }
  svg += steps(plot, report, false, svg::colors[0]) + steps(plot, report, true, svg::colors[1]);
  for (const auto& [point, best] : report.policies) {
    const double x = plot.x(point.peak);
    const double y = plot.y(point.iteration);
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x, y,
        x + 8, y - 6, name_of(point.recompute.policy));
  }
  constexpr double legend = width - 190;
  const auto entry = [&](double y, std::string_view color, std::string_view text) {
    svg += fmt::format(
        "<path d=\"M{0:.0f} {1:.0f}h24\" stroke=\"{2}\" stroke-width=\"2\"/>"
        "<text x=\"{3:.0f}\" y=\"{4:.0f}\">{5}</text>\n",
        legend, y, color, legend + 32, y + 4, text);
  };
  entry(16, svg::colors[0], "all ranks alike");
  entry(36, svg::colors[1], "each rank for itself");
  return svg + "</g>\n</svg>\n";
}

}  // namespace headroom

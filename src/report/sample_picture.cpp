#include "headroom/report/sample_picture.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "headroom/core/expects.hpp"
#include "report/svg.hpp"

namespace headroom {
namespace {

constexpr double size = 640;  // of the plot, in pixels
constexpr double frame = 80;  // around it, for scales and title
constexpr double dashed = 1.25;

std::string_view color_of(SampleKind kind) {
  return svg::colors[static_cast<std::size_t>(kind) % svg::colors.size()];
}

std::string scale_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:g} ms", seconds * 1e3);
  return fmt::format("{:g} us", seconds * 1e6);
}

// Decades that hold every time.
struct LogAxis {
  double least;  // log10 of seconds
  double most;
  [[nodiscard]] double place(double seconds) const {
    return size * (std::log10(seconds) - least) / (most - least);
  }
};

LogAxis axis_of(const SampleReplay& replay) {
  double least = replay.rows.front().predicted.count();
  double most = least;
  for (const ReplayedSample& row : replay.rows) {
    least = std::min({least, row.predicted.count(), row.sample.median.count()});
    most = std::max({most, row.predicted.count(), row.sample.median.count()});
  }
  const double first = std::floor(std::log10(least));
  return {first, std::max(std::ceil(std::log10(most)), first + 1)};
}

std::string line(const LogAxis& axis, double factor, const char* style) {
  // Predicted = factor x measured, cut off where it leaves the plot.
  const double shift = std::log10(factor) / (axis.most - axis.least) * size;
  const double from = std::max(0.0, -shift);
  const double to = std::min(size, size - shift);
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", from,
                     size - from - shift, to, size - to - shift, style);
}

}  // namespace

std::string sample_picture(const SampleReplay& replay, const std::string& title) {
  EXPECTS(!replay.rows.empty());
  const LogAxis axis = axis_of(replay);
  const double whole = size + 2 * frame;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {0:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"{0:.0f}\" height=\"{0:.0f}\" fill=\"white\"/>\n"
      "<text x=\"{1:.0f}\" y=\"28\" text-anchor=\"middle\" font-size=\"16\">{2}</text>\n"
      "<g transform=\"translate({3:.0f} {3:.0f})\">\n",
      whole, whole / 2, svg::escaped(title), frame);
  for (double decade = axis.least; decade <= axis.most; ++decade) {
    const double seconds = std::pow(10, decade);
    const double at = axis.place(seconds);
    svg += fmt::format(
        "<path d=\"M{0:.1f} 0V{1:.0f}M0 {2:.1f}H{1:.0f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\">{4}</text>\n"
        "<text x=\"-8\" y=\"{5:.1f}\" text-anchor=\"end\">{4}</text>\n",
        at, size, size - at, size + 20, scale_text(seconds), size - at + 4);
  }
  svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">measured</text>\n", size / 2,
                     size + 48);
  svg += fmt::format(
      "<text transform=\"translate(-62 {:.0f}) rotate(-90)\" text-anchor=\"middle\">predicted</text>\n",
      size / 2);
  svg += line(axis, 1, "stroke=\"black\"");
  svg += line(axis, dashed, "stroke=\"#888\" stroke-dasharray=\"6 4\"");
  svg += line(axis, 1 / dashed, "stroke=\"#888\" stroke-dasharray=\"6 4\"");
  std::set<SampleKind> kinds;
  for (const ReplayedSample& row : replay.rows) {
    kinds.insert(row.sample.kind);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\" fill-opacity=\"0.6\"/>\n",
                       axis.place(row.sample.median.count()), size - axis.place(row.predicted.count()),
                       color_of(row.sample.kind));
  }
  double y = 16;
  for (const SampleKind kind : kinds) {
    svg += fmt::format(
        "<circle cx=\"14\" cy=\"{:.0f}\" r=\"5\" fill=\"{}\"/><text x=\"26\" y=\"{:.0f}\">{}</text>\n", y,
        color_of(kind), y + 4, name_of(kind));
    y += 20;
  }
  return svg + "</g>\n</svg>\n";
}

}  // namespace headroom

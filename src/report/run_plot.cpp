#include "report/run_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "headroom/core/expects.hpp"
#include "report/svg.hpp"

namespace headroom::run_plot {
namespace {

// Circle, square, triangle, diamond, and a triangle on its tip, each about as large to the eye.
constexpr std::array<std::string_view, 5> shapes{"M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
                                                 "M-3-3h6v6h-6z", "M0-4L4 3H-4z",
                                                 "M0-4.4L4.4 0L0 4.4L-4.4 0z", "M0 4L4-3H-4z"};

std::string number_text(Scale scale, double value) {
  if (scale == Scale::gibibytes) return fmt::format("{:g} GiB", value);
  if (value >= 0.999) return fmt::format("{:g} s", value);
  if (value >= 0.999e-3) return fmt::format("{:g} ms", value * 1e3);
  return fmt::format("{:g} us", value * 1e6);
}

// Logarithms to base ten that hold every figure with a little room.
struct PlotAxis {
  double least = 0;
  double most = 1;
  [[nodiscard]] double place(double value) const {
    return size * (std::log10(value) - least) / (most - least);
  }
};

PlotAxis axis_over(const std::vector<Point>& points) {
  PlotAxis axis{std::log10(points.front().measured), std::log10(points.front().measured)};
  for (const Point& point : points) {
    EXPECTS(point.measured > 0 && point.predicted > 0);
    for (const double value : {point.measured, point.predicted}) {
      axis.least = std::min(axis.least, std::log10(value));
      axis.most = std::max(axis.most, std::log10(value));
    }
  }
  const double room = std::max(0.1, 0.03 * (axis.most - axis.least));
  return {axis.least - room, axis.most + room};
}

// 1, 2 and 5 times powers of ten; powers alone where the scale is long.
std::vector<double> ticks_of(const PlotAxis& axis) {
  constexpr double short_scale = 2.2;  // decades on which three ticks each have room for their text
  std::vector<double> ticks;
  for (double power = std::floor(axis.least); power <= axis.most; ++power) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (step > 1 && axis.most - axis.least > short_scale) continue;
      const double value = step * std::pow(10, power);
      if (std::log10(value) >= axis.least && std::log10(value) <= axis.most) ticks.push_back(value);
    }
  }
  return ticks;
}

std::string scales(const PlotAxis& axis, Scale scale) {
  std::string svg;
  for (const double value : ticks_of(axis)) {
    const double at = axis.place(value);
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} 0V{1:g}M0 {2:.1f}H{1:g}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3:g}\" text-anchor=\"middle\">{4}</text>"
        "<text x=\"-6\" y=\"{5:.1f}\" text-anchor=\"end\">{4}</text>\n",
        at, size, size - at, size + 16, number_text(scale, value), size - at + 4);
  }
  return svg;
}

std::string band_of(const PlotAxis& axis) {
  const double above = std::log10(1 + band) / (axis.most - axis.least) * size;
  const double below = std::log10(1 - band) / (axis.most - axis.least) * size;
  return fmt::format("<path class=\"band\" d=\"M0 {:.1f}L{:g} {:.1f}V{:.1f}L0 {:.1f}z\"/>\n", size - above,
                     size, -above, -below, size - below);
}

}  // namespace

std::string mark_name(std::size_t group) {
  return fmt::format("m{}", group / svg::colors.size() % shapes.size());
}

std::string colour_class(std::size_t group) { return fmt::format("c{}", group % svg::colors.size()); }

std::string mark_symbols() {
  std::string text = "<defs>";
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    text += fmt::format("<path id=\"m{}\" d=\"{}\"/>", i, shapes[i]);
  }
  return text + "</defs>\n";
}

std::string style() {
  std::string text =
      ":root{--paper:#fff;--ink:#1c1c1c;--faint:#666;--line:#e2e2e2;--band:#dfead6}\n"
      "@media(prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e8e8e8;--faint:#a0a0a0;--line:#33373c;"
      "--band:#273824}}\n"
      "svg text{fill:var(--ink);font:11px sans-serif}svg .title{font-size:14px}\n"
      ".grid{stroke:var(--line);fill:none}.frame{stroke:var(--faint);fill:none}"
      ".diagonal{stroke:var(--ink);fill:none}.band{fill:var(--band)}\n"
      "use{fill-opacity:.65}use:hover{fill-opacity:1;stroke:var(--ink)}\n";
  for (std::size_t i = 0; i < svg::colors.size(); ++i) {
    text += fmt::format(".c{}{{fill:{}}}", i, svg::colors[i]);
  }
  // The same hues, light enough to be seen on a dark background.
  constexpr std::array<std::string_view, svg::colors.size()> on_dark{"#4FA8E0", "#F0803C", "#2CC295",
                                                                     "#E29BC4", "#F2BC4B", "#8FD0F5"};
  text += "\n@media(prefers-color-scheme:dark){";
  for (std::size_t i = 0; i < on_dark.size(); ++i) text += fmt::format(".c{}{{fill:{}}}", i, on_dark[i]);
  return text + "}\n";
}

std::string plot(const std::string& title, Scale scale, const std::vector<Point>& points) {
  EXPECTS(!points.empty());
  const PlotAxis axis = axis_over(points);
  const std::string clip = scale == Scale::seconds ? "time" : "memory";
  std::string svg = fmt::format(
      "<g transform=\"translate({0:g} {0:g})\">\n<text class=\"title\" x=\"{1:g}\" y=\"-20\" "
      "text-anchor=\"middle\">{2}</text>\n<clipPath id=\"{3}\"><path d=\"M0 0H{4:g}V{4:g}H0z\"/></clipPath>\n"
      "<g clip-path=\"url(#{3})\">{5}</g>\n",
      margin, size / 2, svg::escaped(title), clip, size, band_of(axis));
  svg += scales(axis, scale);
  svg += fmt::format(
      "<path class=\"diagonal\" d=\"M0 {0:g}L{0:g} 0\"/><path class=\"frame\" d=\"M0 0H{0:g}V{0:g}H0z\"/>\n"
      "<text x=\"{1:g}\" y=\"{2:g}\" text-anchor=\"middle\">measured</text>"
      "<text transform=\"translate(-46 {1:g}) rotate(-90)\" text-anchor=\"middle\">predicted</text>\n",
      size, size / 2, size + 36);
  std::map<std::size_t, std::string> groups;
  for (const Point& point : points) {
    const std::string note = point.note.empty() ? "" : "<title>" + svg::escaped(point.note) + "</title>";
    groups[point.group] +=
        fmt::format("<use href=\"#{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</use>\n", mark_name(point.group),
                    axis.place(point.measured), size - axis.place(point.predicted), note);
  }
  for (const auto& [group, marks] : groups) {
    svg += fmt::format("<g class=\"g{} {}\">\n{}</g>\n", group, colour_class(group), marks);
  }
  return svg + "</g>\n";
}

}  // namespace headroom::run_plot

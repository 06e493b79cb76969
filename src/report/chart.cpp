#include "report/chart.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/svg.hpp"

namespace headroom::chart {
namespace {

constexpr double label_width = 190;   // left of bars
constexpr double amount_width = 110;  // right of bars
constexpr double title_height = 34;
constexpr double legend_row = 20;
constexpr double letter = 7.4;  // width of a letter of 13 pixels, of texts with many wide ones

std::string text_at(double x, double y, std::string_view text, std::string_view attributes = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y, attributes.empty() ? "" : " ",
                     attributes, svg::escaped(text));
}

std::string heading(const std::string& title) {
  return text_at(0, 18, title, "font-size=\"15\" font-weight=\"bold\"");
}

// Names with their signs, in as many rows as they need.
struct LegendEntry {
  std::string name;
  std::string sign;  // SVG of 12 by 12 pixels
};

// Below the chart, unless there is nothing to tell apart.
void add_legend(const std::vector<LegendEntry>& entries, Chart& chart) {
  if (entries.size() < 2) return;
  double x = 0;
  double y = chart.height;
  for (const auto& [name, sign] : entries) {
    const double wide = 18 + letter * static_cast<double>(name.size()) + 16;
    if (x > 0 && x + wide > width) {
      x = 0;
      y += legend_row;
    }
    chart.svg += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">{}</g>\n", x, y + 2, sign) +
                 text_at(x + 18, y + 12, name);
    x += wide;
  }
  chart.height = y + legend_row + 8;
}

std::string square(std::size_t colour) {
  return fmt::format("<path d=\"M0 0h12v12H0z\" fill=\"{}\"/>", colours[colour % colours.size()]);
}

constexpr std::string_view dashes = "stroke=\"#8b1a1a\" stroke-dasharray=\"5 4\" stroke-width=\"1.5\"";
constexpr std::string_view solid = "stroke=\"#1c1c1c\" stroke-width=\"2.5\"";

std::string upright(double x, double from, double to, std::string_view stroke, std::string_view note = "") {
  return fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" fill=\"none\" {}>{}</path>\n", x, from, to, stroke,
                     note.empty() ? "" : "<title>" + svg::escaped(note) + "</title>");
}

double sum_of(const Bar& bar) {
  double sum = 0;
  for (const Part& part : bar.parts) sum += part.value;
  return sum;
}

// The names of parts once, in their order.
std::vector<LegendEntry> legend_of(const Bars& bars) {
  std::vector<LegendEntry> entries;
  for (const Bar& bar : bars.bars) {
    for (const Part& part : bar.parts) {
      const bool known = std::any_of(entries.begin(), entries.end(),
                                     [&](const LegendEntry& entry) { return entry.name == part.name; });
      if (!known) entries.push_back({part.name, square(part.colour)});
    }
  }
  const auto line = [](std::string_view stroke) { return fmt::format("<path d=\"M6 0V12\" {}/>", stroke); };
  if (bars.limit) entries.push_back({bars.limit_name, line(dashes)});
  const bool marked =
      std::any_of(bars.bars.begin(), bars.bars.end(), [](const Bar& bar) { return bar.mark.has_value(); });
  if (marked) entries.push_back({bars.mark_name, line(solid)});
  return entries;
}

}  // namespace

Chart drawn(const Bars& bars) {
  constexpr double usual_row = 24;
  constexpr double room_for_rows = 640;  // more of them become thinner
  const auto rows = static_cast<double>(bars.bars.size());
  const double row = std::clamp(room_for_rows / std::max(rows, 1.0), 2.0, usual_row);
  const bool named = row >= 12;
  double most = bars.limit.value_or(0);
  for (const Bar& bar : bars.bars) most = std::max({most, sum_of(bar), bar.mark.value_or(0)});
  const double scale = most > 0 ? (width - label_width - amount_width) / most : 0;
  Chart chart{.svg = heading(bars.title)};
  double y = title_height;
  const double top = y;
  std::string amounts;  // over the line of the limit
  for (const Bar& bar : bars.bars) {
    double x = label_width;
    const double high = row * 0.75;
    if (named) chart.svg += text_at(label_width - 8, y + high / 2 + 4, bar.label, "text-anchor=\"end\"");
    for (const Part& part : bar.parts) {
      const double wide = part.value * scale;
      chart.svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill=\"{}\"><title>{}</title></rect>\n",
          x, y, wide, high, colours[part.colour % colours.size()],
          svg::escaped(fmt::format("{}\n{}: {}", bar.label, part.name, bars.text(part.value))));
      x += wide;
    }
    if (bar.mark) {
      chart.svg += upright(label_width + *bar.mark * scale, y - 2, y + high + 2, solid,
                           fmt::format("{}\n{}: {}", bar.label, bars.mark_name, bars.text(*bar.mark)));
    }
    if (named) {
      const double end = std::max(x, bar.mark ? label_width + *bar.mark * scale + 2 : 0);
      amounts += text_at(end + 6, y + high / 2 + 4, bar.amount,
                         "stroke=\"white\" stroke-width=\"4\" paint-order=\"stroke\"");
    }
    y += row;
  }
  if (bars.limit) {
    chart.svg += upright(label_width + *bars.limit * scale, top - 4, y, dashes,
                         fmt::format("{}: {}", bars.limit_name, bars.text(*bars.limit)));
  }
  chart.svg += amounts;
  chart.height = y + 8;
  add_legend(legend_of(bars), chart);
  return chart;
}

namespace {

constexpr double left = 76;  // of a plot's frame
constexpr double right = 20;
constexpr double plot_height = 340;
constexpr double plot_width = width - left - right;

// A linear scale whose ends are ticks: 1, 2 or 5 times a power of ten, about eight of them.
struct LinearAxis {
  double least = 0;
  double most = 1;
  double tick = 1;

  static LinearAxis over(double least, double most) {
    constexpr double ticks = 8;
    const double range = most > least ? most - least : std::max(std::abs(most), 1e-9);
    const double power = std::pow(10, std::floor(std::log10(range / ticks)));
    double tick = 10 * power;
    for (const double step : {5.0, 2.0, 1.0}) {
      if (range / (step * power) <= ticks) tick = step * power;
    }
    const double first = std::floor(least / tick) * tick;
    return {first, std::max(std::ceil(most / tick) * tick, first + tick), tick};
  }
  [[nodiscard]] double part(double value) const { return (value - least) / (most - least); }
  [[nodiscard]] std::vector<double> marks() const {
    std::vector<double> values;
    const double count = std::min(std::round((most - least) / tick), 20.0);
    for (double i = 0; i <= count; ++i) values.push_back(least + i * tick);
    return values;
  }
};

struct Frame {
  LinearAxis x;
  LinearAxis y;
  [[nodiscard]] double across(double value) const { return left + plot_width * x.part(value); }
  [[nodiscard]] double down(double value) const { return title_height + plot_height * (1 - y.part(value)); }
};

Frame frame_of(const Plot& plot) {
  std::vector<double> xs = plot.rules;
  std::vector<double> ys;
  if (plot.from_zero) ys.push_back(0);
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  if (xs.empty()) xs.push_back(0);
  if (ys.empty()) ys.push_back(0);
  const auto [x_least, x_most] = std::minmax_element(xs.begin(), xs.end());
  const auto [y_least, y_most] = std::minmax_element(ys.begin(), ys.end());
  return {LinearAxis::over(*x_least, *x_most), LinearAxis::over(*y_least, *y_most)};
}

std::string scales(const Plot& plot, const Frame& frame) {
  const double bottom = title_height + plot_height;
  std::string svg;
  for (const double value : frame.x.marks()) {
    svg += upright(frame.across(value), title_height, bottom, "stroke=\"#e2e2e2\"") +
           text_at(frame.across(value), bottom + 18, fmt::format("{:.6g}", value), "text-anchor=\"middle\"");
  }
  for (const double value : frame.y.marks()) {
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#e2e2e2\"/>\n", left, frame.down(value),
                       plot_width) +
           text_at(left - 8, frame.down(value) + 4, fmt::format("{:.6g}", value), "text-anchor=\"end\"");
  }
  svg += text_at(left + plot_width / 2, bottom + 40, plot.x_title, "text-anchor=\"middle\"");
  return svg + fmt::format(
                   "<text transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                   title_height + plot_height / 2, svg::escaped(plot.y_title));
}

std::string line_of(const Series& series, const Frame& frame, std::string_view colour) {
  if (series.line == Line::none || series.points.empty()) return "";
  std::string path;
  for (const Point& point : series.points) {
    const double x = frame.across(point.x);
    const double y = frame.down(point.y);
    if (path.empty()) {
      path = fmt::format("M{:.1f} {:.1f}", x, y);
    } else if (series.line == Line::steps) {
      path += fmt::format("H{:.1f}V{:.1f}", x, y);
    } else {
      path += fmt::format("L{:.1f} {:.1f}", x, y);
    }
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path, colour);
}

std::string dots_of(const Series& series, const Frame& frame, std::string_view colour) {
  std::string svg;
  if (series.radius <= 0) return svg;
  for (const Point& point : series.points) {
    const double x = frame.across(point.x);
    const double y = frame.down(point.y);
    svg +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" stroke=\"{}\" fill=\"{}\">{}</circle>\n",
                    x, y, series.radius, colour, point.hollow ? "white" : colour,
                    point.note.empty() ? "" : "<title>" + svg::escaped(point.note) + "</title>");
    // Beside the point, on the side that has room.
    const bool far = x > left + 0.8 * plot_width;
    if (series.labelled) {
      svg += text_at(far ? x - 8 : x + 8, y - 7, point.note, far ? "text-anchor=\"end\"" : "");
    }
  }
  return svg;
}

}  // namespace

Chart drawn(const Plot& plot) {
  const Frame frame = frame_of(plot);
  Chart chart{.svg = heading(plot.title) + scales(plot, frame)};
  std::vector<LegendEntry> entries;
  for (const double rule : plot.rules)
    chart.svg +=
        upright(frame.across(rule), title_height, title_height + plot_height, dashes, plot.rule_name);
  for (const Series& series : plot.series) {
    const std::string_view colour = colours[series.colour % colours.size()];
    chart.svg += line_of(series, frame, colour) + dots_of(series, frame, colour);
    entries.push_back({series.name, square(series.colour)});
  }
  const bool hollow = std::any_of(plot.series.begin(), plot.series.end(), [](const Series& series) {
    return std::any_of(series.points.begin(), series.points.end(),
                       [](const Point& point) { return point.hollow; });
  });
  if (hollow)
    entries.push_back(
        {plot.ring_name, "<circle cx=\"6\" cy=\"6\" r=\"4\" stroke=\"#1c1c1c\" fill=\"white\"/>"});
  if (!plot.rules.empty())
    entries.push_back({plot.rule_name, fmt::format("<path d=\"M6 0V12\" {}/>", dashes)});
  chart.height = title_height + plot_height + 54;
  add_legend(entries, chart);
  return chart;
}

std::string document(const std::string& title, const std::string& line, const std::vector<Chart>& charts) {
  constexpr double margin = 24;
  constexpr double between = 18;
  double y = margin + 56;
  std::string body;
  for (const Chart& chart : charts) {
    body += fmt::format("<g transform=\"translate({:g} {:.1f})\">\n{}</g>\n", margin, y, chart.svg);
    y += chart.height + between;
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:.0f}\" width=\"{0:g}\" "
             "height=\"{1:.0f}\" "
             "role=\"img\" aria-label=\"{2}\" font-family=\"sans-serif\" font-size=\"13\">\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             width + 2 * margin, y, svg::escaped(title)) +
         text_at(margin, margin + 16, title, "font-size=\"19\" font-weight=\"bold\"") +
         text_at(margin, margin + 40, line, "fill=\"#555\"") + body + "</svg>\n";
}

}  // namespace headroom::chart

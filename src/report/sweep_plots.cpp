#include "report/sweep_plots.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "headroom/core/units.hpp"
#include "report/reply.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// Colours of lines, neighbours far apart; there are as many lines at most.
constexpr std::array<std::size_t, 12> line_colours{0, 3, 6, 8, 10, 2, 5, 1, 4, 7, 9, 11};
constexpr std::size_t most_bars = 60;

// A figure of a row, as it is drawn.
struct DrawnFigure {
  const char* member;
  const char* title;
  const char* unit_title;
  double unit;
};
constexpr std::array<DrawnFigure, 2> drawn_figures{
    {{"iteration_seconds", "Iteration time", "seconds an iteration", 1},
     {"peak_bytes", "Peak memory", "peak memory of a GPU, GiB", gibi}}};

std::string value_text(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The field whose points have the most different numbers; empty if none has two.
std::string longest_field(const OrderedJson& rows) {
  std::vector<std::pair<std::string, std::set<double>>> fields;
  for (const OrderedJson& row : rows) {
    const OrderedJson* const point = member_of(row, {"point"});
    if (point == nullptr || !point->is_object()) continue;
    for (const auto& [field, value] : point->items()) {
      const auto number = number_of(value);
      if (!number) continue;
      auto found = std::find_if(fields.begin(), fields.end(),
                                [&name = field](const auto& each) { return each.first == name; });
      if (found == fields.end()) found = fields.insert(fields.end(), {field, {}});
      found->second.insert(*number);
    }
  }
  std::string longest;
  std::size_t most = 1;
  for (const auto& [field, values] : fields) {
    if (values.size() <= most) continue;
    most = values.size();
    longest = field;
  }
  return longest;
}

// "tensor parallel 4, recompute full": the point without one of its fields.
std::string others_text(const OrderedJson& point, const std::string& without) {
  std::string text;
  for (const auto& [field, value] : point.items())
    if (field != without)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words(field), value_text(value));
  return text;
}

bool runs_out(const OrderedJson& row) { return text_in(row, {"verdict"}) == "does_not_fit"; }

std::string row_note(const OrderedJson& row, const OrderedJson& point, double value,
                     const DrawnFigure& figure) {
  return fmt::format("{}\n{:.6g} {}\n{}", others_text(point, ""), value, figure.unit_title,
                     words(text_in(row, {"verdict"})));
}

chart::Plot plot_of(const OrderedJson& rows, const std::string& field, const DrawnFigure& figure) {
  chart::Plot plot{.title = figure.title,
                   .x_title = words(field),
                   .y_title = figure.unit_title,
                   .ring_name = "does not fit",
                   .from_zero = true};
  std::set<std::string> left_out;
  for (const OrderedJson& row : rows) {
    const auto x = number_in(row, {"point", field.c_str()});
    const auto value = number_in(row, {figure.member});
    if (!x || !value) continue;
    const OrderedJson& point = *member_of(row, {"point"});
    const std::string name = others_text(point, field);
    auto series = std::find_if(plot.series.begin(), plot.series.end(),
                               [&](const chart::Series& each) { return each.name == name; });
    if (series == plot.series.end()) {
      if (plot.series.size() == line_colours.size()) {
        left_out.insert(name);
        continue;
      }
      series = plot.series.insert(series, {.name = name, .colour = line_colours[plot.series.size()]});
    }
    const double y = *value / figure.unit;
    series->points.push_back({*x, y, row_note(row, point, y, figure), runs_out(row)});
  }
  for (chart::Series& series : plot.series)
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const chart::Point& a, const chart::Point& b) { return a.x < b.x; });
  if (!left_out.empty())
    plot.title += fmt::format(", {} of {} lines", line_colours.size(), line_colours.size() + left_out.size());
  if (plot.series.size() == 1 && plot.series.front().name.empty()) plot.series.front().name = figure.title;
  return plot;
}

chart::Bars bars_of(const OrderedJson& rows, const DrawnFigure& figure) {
  chart::Bars bars{.title = std::string(figure.title) + ", " + figure.unit_title,
                   .text = [](double value) { return fmt::format("{:.4g}", value); }};
  std::size_t all = 0;
  for (const OrderedJson& row : rows) {
    const OrderedJson* const point = member_of(row, {"point"});
    const auto value = number_in(row, {figure.member});
    if (point == nullptr || !point->is_object() || !value) continue;
    if (++all > most_bars) continue;
    const double drawn = *value / figure.unit;
    bars.bars.push_back(
        {.label = others_text(*point, ""),
         .parts = {{runs_out(row) ? "does not fit" : "fits", drawn, runs_out(row) ? 12U : 0U}},
         .amount = bars.text(drawn)});
  }
  if (all > most_bars) bars.title += fmt::format(", {} of {} points", most_bars, all);
  return bars;
}

}  // namespace

void add_sweep_plots(const OrderedJson& sweep, std::vector<chart::Chart>& charts) {
  const OrderedJson& rows = list_in(sweep, {"rows"});
  const std::string field = longest_field(rows);
  for (const DrawnFigure& figure : drawn_figures) {
    if (field.empty()) {
      const chart::Bars bars = bars_of(rows, figure);
      if (!bars.bars.empty()) charts.push_back(drawn(bars));
    } else {
      const chart::Plot plot = plot_of(rows, field, figure);
      if (!plot.series.empty()) charts.push_back(drawn(plot));
    }
  }
}

}  // namespace headroom

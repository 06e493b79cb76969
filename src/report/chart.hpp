// Charts of a picture, as pieces of SVG: bars in parts, and points and lines on two linear axes. A chart is `width`
// wide, and says how high it is.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::chart {

inline constexpr double width = 880;  // in pixels

// Colours of a page on a light background (bindings/web/report/page.css, --c0 to --c12).
inline constexpr std::array<std::string_view, 13> colours{
    "#3b6fb6", "#7aa5d8", "#1f3f73", "#e08a1e", "#f2bf6b", "#a8580c", "#2f8f6b",
    "#8bc8ad", "#b5497f", "#dd9cbd", "#7a5bb0", "#8c929d", "#bcc1c9"};

using NumberText = std::function<std::string(double)>;

struct Chart {
  std::string svg;
  double height = 0;
};

// Bars that start at zero, each of parts in a row.
struct Part {
  std::string name;
  double value = 0;
  std::size_t colour = 0;
};
struct Bar {
  std::string label;
  std::vector<Part> parts;
  std::string amount;          // said at its end
  std::optional<double> mark;  // a second amount, as a line across the bar
};
struct Bars {
  std::string title;
  std::vector<Bar> bars;
  NumberText text;              // of a part, shown on hover
  std::optional<double> limit;  // a line across all bars
  std::string limit_name;
  std::string mark_name;
};

Chart drawn(const Bars& bars);

struct Point {
  double x = 0;
  double y = 0;
  std::string note;     // shown on hover; may be empty
  bool hollow = false;  // drawn as a ring
};
// Steps: between two points the value is that of the left one.
enum class Line : std::uint8_t { none, straight, steps };
struct Series {
  std::string name;
  std::vector<Point> points;
  std::size_t colour = 0;
  Line line = Line::straight;
  double radius = 3;      // of its points; 0: no points
  bool labelled = false;  // the notes of the points are written beside them
};
struct Plot {
  std::string title;
  std::string x_title;  // with the unit of the numbers
  std::string y_title;
  std::vector<Series> series;
  std::vector<double> rules;  // of x, as dashed lines
  std::string rule_name;
  std::string ring_name;   // of hollow points
  bool from_zero = false;  // the y axis begins at zero
};

Chart drawn(const Plot& plot);

// Returns the picture: a title, a line below it, and the charts below each other.
std::string document(const std::string& title, const std::string& line, const std::vector<Chart>& charts);

}  // namespace headroom::chart

// A plot of predicted against measured figures, both on one logarithmic scale, as a piece of SVG.
#pragma once

#include <string>
#include <vector>

namespace headroom::run_plot {

inline constexpr double size = 360;   // of the plot's square, in pixels
inline constexpr double margin = 56;  // around it, for scales and titles
inline constexpr double whole = size + 2 * margin;
inline constexpr double band = 0.1;  // beside the diagonal: errors that small

struct Point {
  double measured = 0;  // in the unit of the scale
  double predicted = 0;
  std::size_t group = 0;
  std::string note;  // what the browser shows beside the point; may be empty
};

// What a scale's numbers are called.
enum class Scale : bool { seconds, gibibytes };

// Return the shape and the colour of the group of this number. Marks differ by both, and repeat after 30
// groups.
std::string mark_name(std::size_t group);     // of a symbol of mark_symbols()
std::string colour_class(std::size_t group);  // of style()

std::string mark_symbols();  // definitions, once in a page
std::string style();         // CSS of what the plot and marks consist of, for a light and a dark background

// Returns a group of SVG, `whole` wide and high. Points stand by group in <g class="gN ...">. Expects figures
// above zero.
std::string plot(const std::string& title, Scale scale, const std::vector<Point>& points);

}  // namespace headroom::run_plot

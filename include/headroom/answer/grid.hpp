// Points of a sweep: fields, the values of each, and the fields that vary together. Fields and values are
// texts, as on a command line; the readers of flags and files interpret them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headroom {

// Fields that vary together. Each step has a value for every field.
struct Axis {
  std::vector<std::string> fields;
  std::vector<std::vector<std::string>> steps;
  friend bool operator==(const Axis&, const Axis&) = default;
};

// The Cartesian product of its axes; the last one varies fastest.
struct Grid {
  std::vector<Axis> axes;
  friend bool operator==(const Grid&, const Grid&) = default;
};

// Largest number of points. More is a mistake: at a millisecond a point, this many take eleven days.
inline constexpr std::int64_t most_points = 1'000'000'000;

// Returns the grid of "FIELD=VALUES" texts, with an axis for each in their order. `zipped` fields
// ("devices,global_batch") share one axis, at the place of the first of them. Throws InputError with all
// problems, named by --vary and --zip.
Grid read_grid(const std::vector<std::string>& varied, const std::vector<std::string>& zipped);

// Returns the fields in the order of the axes.
std::vector<std::string> fields_of(const Grid& grid);

// Returns the number of points, at most most_points for a grid of read_grid().
std::int64_t point_count(const Grid& grid);

// Returns the values of fields_of() at a point. Expects 0 <= index < point_count().
std::vector<std::string> point_of(const Grid& grid, std::int64_t index);

}  // namespace headroom

// The points of a sweep: fields, the values that each takes, and which of them move together. Fields and values are
// texts, as on a command line; what they mean is left to the readers of flags and files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headroom {

// Fields that move together. A step has a value for each of them.
struct Axis {
  std::vector<std::string> fields;
  std::vector<std::vector<std::string>> steps;
  friend bool operator==(const Axis&, const Axis&) = default;
};

// The Cartesian product of its axes, the last of which moves fastest.
struct Grid {
  std::vector<Axis> axes;
  friend bool operator==(const Grid&, const Grid&) = default;
};

// Sweeps of more are mistakes: at a millisecond a point, this many take eleven days.
inline constexpr std::int64_t most_points = 1'000'000'000;

// The grid of "FIELD=VALUES" texts, an axis each in their order; of `zipped` fields ("devices,global_batch") one axis,
// where the first of them stands. Throws InputError with the problems of all, named by --vary and --zip.
Grid read_grid(const std::vector<std::string>& varied, const std::vector<std::string>& zipped);

// In the order of the axes.
std::vector<std::string> fields_of(const Grid& grid);

// At most most_points for a grid that was read.
std::int64_t point_count(const Grid& grid);

// The values of fields_of() at a point, 0 <= index < point_count().
std::vector<std::string> point_of(const Grid& grid, std::int64_t index);

}  // namespace headroom

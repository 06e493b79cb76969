// What is wrong with a sweep as a whole. What is wrong with some of its points is for their rows to say.
#pragma once

#include <string>
#include <vector>

#include "cli/sweep_points.hpp"

namespace headroom::cli {

struct Sweep {
  SweepHead head;
  std::vector<Field> fields;  // of the grid
};

// The arguments of a point: those of all points, and the values of the fields.
std::vector<std::string> arguments_at(const Sweep& sweep, const std::vector<std::string>& values);

// Throws InputError for
//   - a field that is varied and given, and a flag that is required and neither,
//   - a value of a flag that cannot be read, alone or beside the flags of all points,
//   - a mistake that the flags of all points make and no point mends.
void check_sweep(const Sweep& sweep);

}  // namespace headroom::cli

// Measurement files, format 1, in presets/measurements/: published figures to compare predictions with.
//
// A file holds cases, each with a model, a system and a training stack that Headroom knows by name, and
// targets for their errors. `headroom schema measurements` prints the JSON schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/comparison.hpp"

namespace headroom {

struct Measurements {
  std::vector<MeasuredCase> cases;
  std::vector<Target> targets;
  friend bool operator==(const Measurements&, const Measurements&) = default;
};

// Returns the measurements in a file's text; `file` is its name. Throws InputError.
Measurements parse_measurements(std::string_view text, const std::string& file);

// Returns all embedded measurements, by file name.
Measurements embedded_measurements();

}  // namespace headroom

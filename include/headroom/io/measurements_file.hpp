// Measurement files, format 1, in presets/measurements/: published figures to compare predictions with.
//
// Cases of models, of a system and of software that the program knows by name, and the targets that their
// errors are held to. `headroom schema measurements` says the same to other tools.
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

// The measurements in a file's text; `file` is its name. Throws InputError.
Measurements parse_measurements(std::string_view text, const std::string& file);

// All embedded ones, by file name.
Measurements embedded_measurements();

}  // namespace headroom

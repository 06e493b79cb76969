// A picture of samples replayed: predicted against measured time, both logarithmic, as SVG that a browser shows.
#pragma once

#include <string>

#include "headroom/calibrate/sample_replay.hpp"

namespace headroom {

// The diagonal is a perfect prediction, the dashed lines are 25% to either side. Expects at least one row.
std::string sample_picture(const SampleReplay& replay, const std::string& title);

}  // namespace headroom

// Plot of replayed samples: predicted against measured time, both logarithmic, as SVG for a browser.
#pragma once

#include <string>

#include "headroom/calibrate/sample_replay.hpp"

namespace headroom {

// Draws the plot. The diagonal is a perfect prediction; dashed lines are 25% to either side. Expects at least
// one row.
std::string sample_picture(const SampleReplay& replay, const std::string& title);

}  // namespace headroom

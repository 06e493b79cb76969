// The reports of `headroom calibrate` and of `headroom validate --samples`: errors by kind and size, and the samples
// that they are made of.
#pragma once

#include <string>

#include "headroom/answer/calibrate.hpp"
#include "headroom/answer/validate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// What was fitted, and how well it predicts what it was and was not fitted to.
std::string render(const CalibrateReply& reply, const Style& style);

// `all`: a table shows every sample, not only the worst of each group; JSON and CSV always do.
std::string render(const ValidateSamplesReply& reply, const Style& style, bool all = false);

}  // namespace headroom

// Reports of `headroom calibrate` and `headroom validate --samples`: errors by kind and size, and the samples
// behind them.
#pragma once

#include <string>

#include "headroom/answer/calibrate.hpp"
#include "headroom/answer/validate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Renders what was fitted, and how well the fit predicts fitted and held-out samples.
std::string render(const CalibrateReply& reply, const Style& style);

// Renders the errors of samples. With `all`, a table shows every sample, not only the worst of each group;
// JSON and CSV always hold every sample.
std::string render(const ValidateSamplesReply& reply, const Style& style, bool all = false);

}  // namespace headroom

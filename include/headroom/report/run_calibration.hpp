// The report of `headroom calibrate --from-runs`: the efficiencies that were fitted, and what that does to the error of
// every run.
#pragma once

#include <string>

#include "headroom/calibrate/fit_runs.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

std::string render(const RunCalibration& calibration, const std::vector<SkippedRun>& skipped,
                   const Style& style);

}  // namespace headroom

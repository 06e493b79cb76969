// Reading the runs that `validate` predicts and `calibrate` fits to.
#pragma once

#include <string>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/report/table.hpp"

namespace headroom::cli {

// The runs of the files, with the problems of files that cannot be read. Names on stderr what is wrong with single runs,
// which the command then leaves out.
std::vector<MeasuredRun> read_run_files(const std::vector<std::string>& files,
                                        std::vector<Problem>& problems);

// Names on stderr the runs that a report in CSV has no place for.
void note_skipped(const std::vector<SkippedRun>& skipped, const Style& style);

}  // namespace headroom::cli

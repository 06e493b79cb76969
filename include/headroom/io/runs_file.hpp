// Runs files: a list of published or measured training runs, each with its configuration and iteration time.
//
// docs/runs-files.md lists the members. null means no member. A missing member that a prediction needs is
// noted (MeasuredRun::lacking). Members that describe a run in words are not read; any other unknown member
// is a mistake. A mistake affects only its own run (MeasuredRun::mistakes); the other runs are read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/core/error.hpp"

namespace headroom {

// Returns the runs in a file's text; `file` is its name. A run without a name is named by its place ("/12").
// Throws InputError if the text is not JSON or not a list.
std::vector<MeasuredRun> parse_runs(std::string_view text, const std::string& file);

// Returns the runs in the file at `path`. Throws InputError as parse_runs does.
std::vector<MeasuredRun> read_runs(const std::string& path);

// Returns the mistakes of all runs of a file, up to a limit, by place within the file ("runs.json:
// /12/parallel/tp").
std::vector<Problem> mistakes_of(const std::vector<MeasuredRun>& runs, const std::string& file);

}  // namespace headroom

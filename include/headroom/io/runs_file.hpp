// Runs files: a list of training runs, each with its configuration and iteration time, as people published or
// measured them.
//
// docs/runs-files.md lists the members. null is the same as no member, a member that a prediction needs and a run does not
// state is noted (MeasuredRun::lacking), and members that describe a run in words are not read; any other unknown member
// is a mistake. A mistake is its run's alone (MeasuredRun::mistakes): the others are read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/core/error.hpp"

namespace headroom {

// The runs in a file's text; `file` is its name. A run without a name is called by its place ("/12"). Throws InputError
// for a text that is not JSON, or no list.
std::vector<MeasuredRun> parse_runs(std::string_view text, const std::string& file);

// Throws InputError likewise.
std::vector<MeasuredRun> read_runs(const std::string& path);

// The mistakes of all runs of a file, by places within the file ("runs.json: /12/parallel/tp"): enough to mend it by.
std::vector<Problem> mistakes_of(const std::vector<MeasuredRun>& runs, const std::string& file);

}  // namespace headroom

// Runs files: a list of training runs, each with its configuration and iteration time, as people published or
// measured them.
//
// docs/validation.md lists the members. null is the same as no member, a member that a prediction needs and a run does not
// state is noted (MeasuredRun::lacking), and members that describe a run in words are not read; any other unknown member
// is a mistake.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"

namespace headroom {

// The runs in a file's text; `file` is its name. Throws InputError.
std::vector<MeasuredRun> parse_runs(std::string_view text, const std::string& file);

// Throws InputError.
std::vector<MeasuredRun> read_runs(const std::string& path);

}  // namespace headroom

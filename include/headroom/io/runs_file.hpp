// Runs files: a list of training runs, each with its configuration and iteration time, as people published or
// measured them.
//
// docs/validation.md lists the members. null is the same as no member, and members that describe a run in
// words are not read; any other unknown member is a mistake.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/io/measurements_file.hpp"

namespace headroom {

// The runs in a file's text; `file` is its name. Throws InputError.
std::vector<MeasuredRun> parse_runs(std::string_view text, const std::string& file);

// Throws InputError.
std::vector<MeasuredRun> read_runs(const std::string& path);

struct SkippedRun {
  std::string source;
  std::string name;
  std::string reason;
  friend bool operator==(const SkippedRun&, const SkippedRun&) = default;
};

struct RunCases {
  Measurements measurements;
  std::vector<SkippedRun> skipped;
};

// The runs as cases of the systems and software that their sources used. A system or software that is given
// (a name or a file) takes their place. Throws InputError.
RunCases cases_of(const std::vector<MeasuredRun>& runs, const std::optional<std::string>& system,
                  const std::optional<std::string>& software);

}  // namespace headroom

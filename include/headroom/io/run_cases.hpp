// Runs as cases to predict: which system and which training stack each of them is of, and why others are skipped.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/io/measurements_file.hpp"

namespace headroom {

// The names of the presets that predict a run: those of its source, or else the system of its device
// (system_of_device()), which is absent where no system has it, and that system's stack. A stack that the run names takes
// that one's place. `source` is null for a run without a key.
struct RunPresets {
  std::optional<std::string> system;
  std::string software;
  friend bool operator==(const RunPresets&, const RunPresets&) = default;
};
RunPresets presets_of(const MeasuredRun& run, const PublishedSource* source);

struct SkippedRun {
  std::string source;
  std::string name;
  std::vector<std::string> reasons;  // all that it has, at least one
  friend bool operator==(const SkippedRun&, const SkippedRun&) = default;
};

// The reasons of a run in a line.
std::string text_of(const SkippedRun& run);

// A member that says how runs ran and that no prediction depends on ("parallel.nvlink_domain"), and how many have it.
struct UnreadMember {
  std::string name;
  std::size_t runs = 0;
  friend bool operator==(const UnreadMember&, const UnreadMember&) = default;
};

struct RunCases {
  Measurements measurements;
  std::vector<SkippedRun> skipped;
  std::vector<UnreadMember> unread;  // by any run, the most frequent first
};

// The runs as cases of the systems and software that their sources used. A system or software that is given
// (a name or a file) takes their place. Throws InputError.
RunCases cases_of(const std::vector<MeasuredRun>& runs, const std::optional<std::string>& system,
                  const std::optional<std::string>& software);

// Runs of one system, for a fit of its efficiencies (calibrate/fit_runs.hpp).
struct ChosenRuns {
  std::vector<MeasuredCase> fitted;
  std::vector<MeasuredCase> held_out;
  std::vector<SkippedRun> skipped;
};

// To be fitted are the runs of the names in `fit`; without names those that the file marks; without marks all. The
// others are held out. Runs that are of another device than `base` (a name or a file), cannot be read or predicted, have
// the name of an earlier one or would be fitted and took a time that the base cannot explain are skipped. Throws InputError where such a run was named, and for a name that no run has.
ChosenRuns choose_runs(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& fit,
                       const std::string& base, const std::optional<std::string>& software);

}  // namespace headroom

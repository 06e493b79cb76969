// Measured runs as cases to predict: the system and training stack of each run, and why other runs are
// skipped.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/io/measurements_file.hpp"

namespace headroom {

// Names of the presets that predict a run: its source's presets, or else the system of its GPU
// (system_of_device()) and that system's stack. The system is absent if no system has the GPU. A stack named
// by the run takes precedence. `source` is null for a run without a key.
struct RunPresets {
  std::optional<std::string> system;
  std::string software;
  friend bool operator==(const RunPresets&, const RunPresets&) = default;
};
RunPresets presets_of(const MeasuredRun& run, const PublishedSource* source);

struct SkippedRun {
  std::string source;
  std::string name;
  std::vector<std::string> reasons;  // all reasons, at least one
  friend bool operator==(const SkippedRun&, const SkippedRun&) = default;
};

// Returns the reasons of a run on one line.
std::string text_of(const SkippedRun& run);

// Member of runs that states how they ran but affects no prediction ("parallel.nvlink_domain"), and the
// number of runs that have it.
struct UnreadMember {
  std::string name;
  std::size_t runs = 0;
  friend bool operator==(const UnreadMember&, const UnreadMember&) = default;
};

struct RunCases {
  Measurements measurements;
  std::vector<SkippedRun> skipped;
  std::vector<UnreadMember> unread;  // in any run, the most frequent first
};

// Returns the runs as cases on the systems and training stacks that their sources used. A given `system` or
// `software` (a name or a file) replaces them. Throws InputError.
RunCases cases_of(const std::vector<MeasuredRun>& runs, const std::optional<std::string>& system,
                  const std::optional<std::string>& software);

// Runs on one system, for a fit of its efficiencies (calibrate/fit_runs.hpp).
struct ChosenRuns {
  std::vector<MeasuredCase> fitted;
  std::vector<MeasuredCase> held_out;
  std::vector<SkippedRun> skipped;
};

// Chooses the runs to fit: those named in `fit`; without names, the runs that the file marks; without marks,
// all runs. Other runs are held out. A run is skipped if its GPU differs from that of `base` (a name or a
// file), if it cannot be read or predicted, or if it has the name of an earlier run. A run to fit is also
// skipped if the base cannot explain its time. Throws InputError if a skipped run was named, and for a name
// that no run has.
ChosenRuns choose_runs(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& fit,
                       const std::string& base, const std::optional<std::string>& software);

}  // namespace headroom

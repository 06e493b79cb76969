// Trials files, format 1: runs of strategies that a plan is to be chosen among. `headroom plan --trial`
// writes them without times; `headroom plan --measured` reads them with what the runs came to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/units.hpp"

namespace headroom {

// A row with neither a time nor out_of_memory has not run yet.
struct TrialRow {
  std::string flags;  // of the strategy, as `headroom estimate` takes them: "-t 4 -p 8 -b 1"
  std::optional<double> iteration_seconds;
  bool out_of_memory = false;
  friend bool operator==(const TrialRow&, const TrialRow&) = default;
};

// Returns the rows in a file's text; `file` is its name. Throws InputError, also for a row that has both a
// time and no memory left.
std::vector<TrialRow> parse_trials(std::string_view text, const std::string& file);

// Returns the text of a file with these rows.
std::string trials_text(const std::vector<TrialRow>& rows);

// Returns whether a text looks like a list of runs (io/runs_file.hpp) instead.
bool looks_like_runs(std::string_view text);

}  // namespace headroom

// --exact, --trial and --measured: how `plan` chooses among plans that predictions cannot tell apart.
#pragma once

#include <string>
#include <vector>

#include "cli/changed_flags.hpp"
#include "cli/launch_output.hpp"
#include "headroom/answer/plan.hpp"

namespace headroom::cli {

struct ChoiceFlags {
  bool exact = false;
  FlagText trials;
  std::string measured;  // a file
};

void add_exact_flag(Command command, bool& exact);
void add_choice_flags(Command command, ChoiceFlags& flags);

// Returns what is asked, without what was measured. Adds a problem where the question has no choice to make.
ChoiceQuestion read_choice_flags(const ChoiceFlags& flags, const PlanQuestion& question,
                                 std::vector<Problem>& problems);

// Returns the runs in a trials file or a runs file. What a row leaves out is as in `flags`, which `base` and `space`
// were read from; `target` is the launcher that their stack was priced for. Names on stderr the rows that have not run
// yet. Throws InputError, by row.
std::vector<TrialResult> read_measured(const std::string& file, const AllFlags& flags, const Request& base,
                                       const Space& space, std::optional<LaunchTarget> target);

// Adds the launches of trials, and a trials file for their times, to the files of the best plan's launch. Takes
// launches away that were not asked for.
void add_trials(const LaunchOutput& options, PlanReply& reply, PlanChoice& choice);

}  // namespace headroom::cli

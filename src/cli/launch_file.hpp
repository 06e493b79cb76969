// A launch file in place of a model: what it says stands as if typed, and flags override it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/request_flags.hpp"
#include "cli/space_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/interop/launched_run.hpp"

namespace headroom::cli {

// The options of a launch file.
LaunchOptions launch_options(const RequestFlags& flags, const std::vector<std::string>& overrides);

// Reads the launch file that the flags name as their model, if it is one, and gives flags that were not given the
// values of the file. Says on stderr what was read. Throws InputError.
void take_launch_file(RequestFlags& flags, SystemFlags& system);

// The same for a search: model, batch, precision and GPUs alone. Returns the flags of the file's own strategy.
std::optional<RequestFlags> take_launch_file(RequestFlags& flags, SystemFlags& system, SpaceFlags& space);

// Runs `action`, and names flags that a launch file gave by their place there.
template <class Action>
void with_places(const RequestFlags& flags, Action action) {
  if (flags.places.empty()) return action();
  try {
    action();
  } catch (const UsageError&) {
    throw;
  } catch (const InputError& error) {
    std::vector<Problem> problems;
    for (const Problem& problem : error.problems()) {
      const Problem typed = as_typed(problem);
      const auto place = flags.places.find(typed.where);
      problems.push_back(place == flags.places.end() ? typed : Problem{place->second, typed.rule});
    }
    throw InputError(std::move(problems));
  }
}

// Lines that say what was read.
std::vector<std::string> told(const LaunchedRun& run, const std::string& source);

}  // namespace headroom::cli

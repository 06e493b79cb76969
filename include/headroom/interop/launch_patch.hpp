// Changes a launch file's own text so that it starts another strategy.
#pragma once

#include <optional>
#include <string>

#include "headroom/interop/launched_run.hpp"
#include "headroom/parallel/edits.hpp"

namespace headroom {

// Returns the text of a launch file after edits of its strategy: comments, order and variables stay. The text was
// read again and gives the fields their new values and leaves all others as they were; nothing if no such text
// was found. Expects the run that the source reads as with the options.
std::optional<std::string> patched_launch(const std::string& source, const LaunchedRun& run,
                                          const LaunchOptions& options, const Edits& edits);

}  // namespace headroom

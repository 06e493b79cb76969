// --launch and --launch-dir: a whole launch of a plan, printed or written to a folder.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "headroom/interop/launch.hpp"
#include "headroom/report/table.hpp"

namespace headroom::cli {

struct LaunchOutput {
  std::string launch;  // "true": of the stack's own launcher
  std::string folder;
};

void add_launch_output(Command command, LaunchOutput& options, const std::string& help);

inline bool is_asked(const LaunchOutput& options) {
  return !options.launch.empty() || !options.folder.empty();
}

// Returns the launcher that was named, or nothing for the stack's own. Adds a problem if it does not run one of the
// stacks, if a stack's own is not known, or for CSV, whose rows hold no files.
std::optional<LaunchTarget> read_target(const LaunchOutput& options, std::span<const Software* const> stacks,
                                        const Style& style, std::vector<Problem>& problems);

// Writes the files of a launch, if a folder was named: all of them, or none. Throws InputError for a file that exists
// with another text, and for what cannot be written.
void write_launch(const LaunchOutput& options, const std::optional<Launch>& launch,
                  const std::string& report);

}  // namespace headroom::cli

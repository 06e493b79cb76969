#include "report/launch.hpp"

#include <fmt/format.h>

#include "report/text.hpp"

namespace headroom {

std::string launch_text(const LaunchFlags& launch, const Style& style) {
  const bool overrides = launch.launcher == Launcher::deepspeed;
  std::string text = fmt::format("\n{} {}:\n", overrides ? "In the configuration of" : "Launch with",
                                 name_of(launch.launcher));
  std::string line = " ";
  for (const std::string& flag : launch.flags) {
    const bool full = line.size() > 1 && style.columns > 0 && line.size() + flag.size() + 3 > style.columns;
    if (overrides ? line.size() > 1 : full) {
      text += line + (overrides ? "\n" : " \\\n");
      line = overrides ? " " : "   ";
    }
    line += " " + flag;
  }
  text += line + "\n";
  for (const std::string& lack : launch.lacks)
    text += in_lines("- no flag for " + lack, style.columns, 2) + "\n";
  return text;
}

}  // namespace headroom

// Pages of the manual, made of what the help says of commands and options.
#pragma once

#include <string>

#include "cli/command_line.hpp"

namespace headroom::cli {

// "headroom-sweep-plan", of "headroom sweep plan".
std::string page_name(const CommandText& command);

// The page of a command for man(1), in roff. `version` is the program's.
std::string manual_page(const CommandText& command, const std::string& version);

}  // namespace headroom::cli

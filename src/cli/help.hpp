// The text of --help and of --help-all, made of what a command says of itself.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace headroom::cli {

// The options of a topic, or the positional arguments, in the order of their command.
struct OptionGroup {
  std::string title;
  std::vector<const OptionText*> options;
};

// All options of a command, topic by topic. Expects topics of cli/topics.hpp.
std::vector<OptionGroup> grouped(const CommandText& command);

// What --help prints, in lines of `columns`: the flags of daily use where the command has a list of them, with
// at most three examples; otherwise all. Expects that the command has the flags of its list.
std::string short_help(const CommandText& command, std::size_t columns);

// What --help-all prints: all options by topic, and all examples.
std::string whole_help(const CommandText& command, std::size_t columns);

}  // namespace headroom::cli

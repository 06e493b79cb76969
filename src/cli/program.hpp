// The program's commands, and running one of them from a command line.
#pragma once

#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/exit_code.hpp"
#include "headroom/core/error.hpp"

namespace headroom::cli {

// Adds the command that the first argument names, or all of them if it names none. The flags of all take longer than a short
// answer. Completions and manual pages list every command.
void add_commands(CommandLine& command_line, std::string_view first, ExitCode& exit_code);

// The problems of an error, as what the user typed.
std::vector<Problem> problems_as_typed(const InputError& error, const CommandLine& command_line);

// Runs the command that the arguments name. Prints what is wrong on stderr.
ExitCode run(int argc, const char* const* argv);

}  // namespace headroom::cli

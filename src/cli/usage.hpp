// What is wrong with a command line, and what could have been meant.
#pragma once

#include "cli/command_line.hpp"
#include "cli/other_names.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): that of the library
class App;
class ParseError;
}  // namespace CLI

namespace headroom::cli {

// Throws InputError with the problems of the arguments' names, and with every flag that their command lacks.
void check_flags(const CLI::App& program, const OwnNames& own);

// Returns why the arguments could not be parsed.
UsageError usage_error(const CLI::App& program, const CLI::ParseError& error);

// Returns the same as the rule that the argument of a flag breaks: "has no option '--spp' (did you mean '--sp'?)".
std::string broken_rule(const CLI::App& flags, const CLI::ParseError& error);

// Throws UsageError if help was asked for a command that does not exist: "help nosuch".
void check_help(const CLI::App& program, const CLI::ParseError& asked);

}  // namespace headroom::cli

// What is wrong with a command line, and what could have been meant.
#pragma once

#include "cli/command_line.hpp"
#include "cli/other_names.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): that of the library
class App;
class ParseError;
}  // namespace CLI

namespace headroom::cli {

// Throws InputError with what is wrong with the names of the arguments, and with every flag that their command has not.
void check_flags(const CLI::App& program, const OwnNames& own);

// What kept the arguments from being parsed.
UsageError usage_error(const CLI::App& program, const CLI::ParseError& error);

// Throws UsageError where help was asked of a command that there is not: "help nosuch".
void check_help(const CLI::App& program, const CLI::ParseError& asked);

}  // namespace headroom::cli

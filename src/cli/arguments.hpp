// Command lines as lists of arguments, to be kept and given to a parser again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace headroom::cli {

// "--tensor-parallel" of "-t,--tensor-parallel"; the last of several long names; empty for a positional argument.
std::string flag_of(const CLI::Option& option);

// What a parsed command was given, in one spelling: positional arguments as they are, flags as "--name=value", in the
// order of the help and without those of `except` ("--format"). Throws InputError when one is not text.
std::vector<std::string> arguments_of(const CLI::App& command, const std::vector<std::string_view>& except);

// Has a parser read such arguments, in which a flag without a value is "yes", "no" or, from arguments_of(), "true".
// Throws InputError.
void parse(CLI::App& parser, const std::vector<std::string>& arguments);

}  // namespace headroom::cli

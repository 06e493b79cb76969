// Completions of shells, made of what the help says of commands and options.
#pragma once

#include <array>
#include <string>

#include "cli/command_line.hpp"
#include "headroom/core/names.hpp"

namespace headroom::cli {

enum class Shell : std::uint8_t { bash, zsh, fish };

// A script that the shell reads. Values are completed where they have names: models, systems, stacks, enumerators, files.
std::string completions(const CommandText& program, Shell shell);

}  // namespace headroom::cli

template <>
inline constexpr std::array<headroom::Spelling<headroom::cli::Shell>, 3>
    headroom::spellings<headroom::cli::Shell>{{{headroom::cli::Shell::bash, "bash"},
                                               {headroom::cli::Shell::zsh, "zsh"},
                                               {headroom::cli::Shell::fish, "fish"}}};

// Questions of other programs, as command lines: {"command": "plan", "arguments": {"model": "llama-3-70b", "devices": 64}}.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"

namespace headroom::cli {

struct JsonQuestion {
  std::string command;                       // "plan", "sweep plan"
  std::vector<std::string> arguments;        // with the command's words in front
  std::map<std::string, std::string> files;  // texts by name, which stand in front of the disk's files
  bool disk = true;                          // whether the command may read and write others
};

// Returns the question in a text. Throws InputError whose problems name members of it ("arguments/devices").
JsonQuestion read_question(std::string_view json);

// Returns the JSON schema of a command's `arguments`, from its flags.
std::string arguments_schema(const CommandText& command);

// "global_batch" of "--global-batch", "model" of "model".
std::string member_of_flag(std::string_view flag);

// Returns the text of a command with all of its flags, such as "sweep plan". Throws InputError if there is none.
CommandText text_of_command(const std::string& command);

}  // namespace headroom::cli

// Scripts that start a launcher: sbatch on several nodes, torchrun on one. For the launches of this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/interop/launch.hpp"

namespace headroom {

// Nodes of a launch, and GPUs that it uses on each.
struct NodeGrid {
  std::int64_t nodes = 1;
  std::int64_t devices_per_node = 1;
};
NodeGrid node_grid(const Request& request);

// A variable at the top of a script that only the user can fill in.
struct UserVariable {
  std::string_view name;
  std::string_view value;  // default
  std::string_view what;
};

// An array of arguments: a name and its words, which are written one flag a line.
struct ArgumentArray {
  std::string_view name;
  std::vector<std::string> words;
};

struct Script {
  std::vector<UserVariable> variables;
  std::vector<ArgumentArray> arrays;
  std::string program;  // what torchrun starts: "\"$MEGATRON_PATH/pretrain_gpt.py\""
  std::string setup;    // lines before the program starts
  std::string started;  // replaces torchrun, its flags and the program
};

std::string script_text(const Script& script, const Launch& launch, const Request& request);

// Returns the first line of comments of a file: what it is and whose release it is for.
std::string file_title(const Launch& launch, const Request& request);

// Returns the environment that every launcher shares: PyTorch's allocator and blocking launches, as priced.
std::vector<LaunchVariable> shared_environment(const Request& request);

// Returns the command that starts the script.
std::string start_command(const Request& request, std::string_view script);

}  // namespace headroom

// The readers of launch files, by the syntax of the file. Each takes the text of a file and its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/setting.hpp"

namespace headroom {

// A bash script that starts a run.
LaunchedRun read_launch_script(std::string_view text, const std::string& file, const LaunchOptions& options);

// A configuration in YAML, TOML or JSON, of a framework that its keys tell.
LaunchedRun read_tree_file(std::string_view text, const std::string& file, const LaunchOptions& options,
                           const std::vector<Written>& overrides = {});

// A configuration that a function of a Python file returns; an empty name: the only one there is.
LaunchedRun read_python_config(std::string_view text, const std::string& file, const std::string& function,
                               const LaunchOptions& options);

// Of the two, by what a source names: "config.yaml", "config_registry.py::llama3_8b".
bool is_tree_launch(const std::string& source);
// `overrides`: settings that take the place of the file's ("--max_length 4096").
LaunchedRun read_tree_launch(std::string_view text, const std::string& source, const LaunchOptions& options,
                             const std::vector<Written>& overrides = {});

// The file that a source names.
std::string file_of_launch(const std::string& source);

}  // namespace headroom

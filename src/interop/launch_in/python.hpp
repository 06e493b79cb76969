// Literal Python: what a function of a configuration returns, as far as it is written out. Nothing is imported or run: a
// call of a function of this file, or of one beside it, is followed; any other is kept by its name and arguments.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interop/launch_in/tree.hpp"

namespace headroom {

struct PythonRemark {
  std::string text;
  std::int64_t line = 0;
};

struct PythonResult {
  TreeNode root;  // a map; its text is what was called. Values that only a run knows are texts "${...}"
  std::vector<PythonRemark> remarks;
};

// The functions that can be called without arguments, in their order.
std::vector<std::string> python_functions(std::string_view text, const std::string& file);

// Variables that a program is started with. Only a run knows a value with "${".
using PythonEnvironment = std::map<std::string, std::string, std::less<>>;

// Returns what a function returns when called without arguments. Throws InputError if the file is not
// Python or lacks the function.
PythonResult call_python(std::string_view text, const std::string& file, const std::string& function,
                         const PythonEnvironment& environment = {});

// Which calls run_python() returns, by what is called ("TrainingArguments", "LoraConfig").
using PythonCalls = bool (*)(std::string_view called);

using PythonFlags = std::map<std::string, std::string>;

// Returns the flags of a command as argparse takes them: --bs 4, --bs=4, -b 4, --checkpoint. Words that only a
// run knows are "${}".
PythonFlags python_flags(const std::vector<std::string>& words);

struct PythonStart {
  PythonFlags flags;     // by name, values in the place of argparse's defaults
  std::string function;  // to call in the place of the program; empty: none
  PythonEnvironment environment;
};
// Follows a file as the main program, as far as its values are literal. Returns the calls that `wanted` selects
// and that are not followed, in their order. Throws InputError if the file is not Python or lacks the function.
PythonResult run_python(std::string_view text, const std::string& file, PythonCalls wanted,
                        const PythonStart& start = {});

// Returns the file's global names with their final values, as a map. Throws InputError where the file is no Python.
PythonResult python_names(std::string_view text, const std::string& file);

}  // namespace headroom

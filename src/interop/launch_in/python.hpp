// Literal Python: what a function of a configuration returns, as far as it is written out. Nothing is imported or run: a
// call of a function of this file, or of one beside it, is followed; any other is kept by its name and arguments.
#pragma once

#include <functional>
#include <memory>
#include <optional>
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

// Gives the text of a module beside the file ("common" of "from .common import f"); none: it is not there.
using PythonModules = std::function<std::optional<std::string>(const std::string& name)>;

// The functions that can be called without arguments, in their order.
std::vector<std::string> python_functions(std::string_view text, const std::string& file);

// Throws InputError where the file is no Python, or has no such function.
PythonResult call_python(std::string_view text, const std::string& file, const std::string& function,
                         const PythonModules& modules);

// Returns the file's global names with their final values, as a map. Throws InputError where the file is no Python.
PythonResult python_names(std::string_view text, const std::string& file);

}  // namespace headroom

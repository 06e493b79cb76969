#include "interop/launch_in/python.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "interop/launch_in/python_interpreter.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

class TreeMaker {
 public:
  explicit TreeMaker(const std::string& file) : file_(file) {}

  TreeNode of(const PythonValue& value, const std::string& key, std::size_t depth) {
    if (++nodes_ > most_tree_nodes || depth > deepest_tree)
      throw InputError(fmt::format("{}:{}", file_, value.line), "holds more than a configuration can");
    TreeNode node;
    node.key = key;
    node.line = value.line;
    switch (value.kind) {
      case PythonKind::none: node.kind = TreeKind::none; break;
      case PythonKind::boolean:
      case PythonKind::number:
      case PythonKind::text:
        node.kind = TreeKind::scalar;
        node.text = value.text;
        node.quoted = value.kind == PythonKind::text;
        break;
      case PythonKind::unknown:
      case PythonKind::function:
        node.kind = TreeKind::scalar;
        node.text = value.text.find('.') != std::string::npos && value.text.find('(') == std::string::npos
                        ? value.text
                        : "${" + value.text + "}";
        break;
      case PythonKind::list:
      case PythonKind::map:
      case PythonKind::object:
        node.kind = value.kind == PythonKind::list ? TreeKind::list : TreeKind::map;
        if (value.kind == PythonKind::object) node.text = value.text;
        for (const auto& [name, member] : value.members) node.members.push_back(of(*member, name, depth + 1));
        break;
    }
    return node;
  }

 private:
  const std::string& file_;
  std::size_t nodes_ = 0;
};

// Returns other modules by their path from the folder of a file. That of a package may start in a folder above.
PythonModules modules_beside(const std::string& file) {
  return [file](const std::string& module) -> std::optional<std::string> {
    const int most_above = module.find('/') == std::string::npos ? 0 : 4;
    std::filesystem::path folder = std::filesystem::path(file).parent_path();
    for (int i = 0; i <= most_above; ++i, folder = folder / "..") {
      const std::filesystem::path path = (folder / (module + ".py")).lexically_normal();
      if (path == std::filesystem::path(file).lexically_normal()) return std::nullopt;
      if (is_regular_file(path.string())) return read_file(path.string());
    }
    return std::nullopt;
  };
}

// Returns what a function of the module returns.
PythonPointer called(Python& python, const PythonModule& module, const std::string& function) {
  const auto found = module.names.find(function);
  if (found == module.names.end() || found->second->kind != PythonKind::function)
    throw InputError(module.file, fmt::format("has no function '{}'", printable(function)));
  return python.call(found->second->index, {}, found->second->line);
}

bool needs_nothing(const PythonDefinition& definition) {
  return std::all_of(definition.parameters.begin(), definition.parameters.end(),
                     [](const PythonParameter& p) { return p.value || p.stars > 0; });
}

}  // namespace

std::vector<std::string> python_functions(std::string_view text, const std::string& file) {
  const PythonModules none = [](const std::string&) { return std::nullopt; };
  Python python(none);
  python.load(text, file);
  std::vector<std::string> names;
  for (const PythonDefinition& definition : python.definitions()) {
    if (!definition.name.starts_with('_') && needs_nothing(definition)) names.push_back(definition.name);
  }
  return names;
}

PythonResult call_python(std::string_view text, const std::string& file, const std::string& function,
                         const PythonEnvironment& environment) {
  const PythonModules modules = modules_beside(file);
  Python python(modules, {}, environment);
  const PythonModule& module = python.load(text, file);
  const PythonPointer value = called(python, module, function);
  return {TreeMaker(file).of(*value, "", 0), python.take_remarks()};
}

PythonResult run_python(std::string_view text, const std::string& file, PythonCalls wanted,
                        const PythonStart& start) {
  const PythonModules modules = modules_beside(file);
  Python python(modules, start.flags, start.environment);
  const PythonModule& module = python.load(text, file, start.function.empty());
  if (!start.function.empty()) called(python, module, start.function);
  PythonResult result;
  result.root.kind = TreeKind::list;
  for (const PythonPointer& call : python.calls()) {
    if (!wanted(call->text)) continue;
    if (result.root.members.size() >= most_members)
      throw InputError(file,
                       fmt::format("has more than {} calls that start or configure training", most_members));
    result.root.members.push_back(TreeMaker(file).of(*call, "", 0));
  }
  result.remarks = python.take_remarks();
  return result;
}

PythonResult python_names(std::string_view text, const std::string& file) {
  const PythonModules none = [](const std::string&) { return std::nullopt; };
  Python python(none);
  PythonValue names(PythonKind::map, "", 1);
  const PythonModule& module = python.load(text, file);
  for (const PythonNames* const of : {&module.names, &module.tables})
    names.members.insert(names.members.end(), of->begin(), of->end());
  return {TreeMaker(file).of(names, "", 0), python.take_remarks()};
}

PythonFlags python_flags(const std::vector<std::string>& words) {
  PythonFlags flags;
  std::string name;
  for (const std::string& word : words) {
    const std::size_t start = std::min(word.find_first_not_of('-'), word.size());
    const bool is_flag = start > 0 && word.find_first_of("0123456789") != 1;  // "-1" is a value
    if (is_flag) {
      const std::size_t equals = std::min(word.find('=', start), word.size());
      name = word.substr(start, equals - start);
      std::replace(name.begin(), name.end(), '-', '_');
      flags[name] = equals < word.size() ? word.substr(equals + 1) : "";
    } else if (!name.empty() && flags[name].empty()) {
      flags[name] = word;
    }
  }
  return flags;
}

}  // namespace headroom

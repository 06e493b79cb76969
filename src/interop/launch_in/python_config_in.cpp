#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/python_config.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launch_in/trainer_script.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::string_view other_python =
    " (of torchtitan, NeMo or Megatron-Bridge), and makes no arguments of a Trainer: give the script or the "
    "configuration that starts the job";

// Returns the function whose configuration a file has: the only one, or that of pretraining.
std::string function_of(std::string_view text, const std::string& file) {
  const std::vector<std::string> functions = python_functions(text, file);
  if (functions.size() == 1) return functions.front();
  if (contains(functions, std::string("pretrain_recipe"))) return "pretrain_recipe";
  if (functions.empty())
    throw InputError(file, "has no function that takes no arguments and returns a configuration" +
                               std::string(other_python));
  throw InputError(file, fmt::format("has several configurations: name one as {}::FUNCTION, of {}", file,
                                     fmt::join(functions, ", ")));
}

PythonResult configuration_in(std::string_view text, const std::string& file, const std::string& function,
                              const PythonEnvironment& environment) {
  PythonResult result = call_python(text, file, function, environment);
  if (!result.root.members.empty() || !result.root.text.empty()) return result;
  if (std::optional<PythonResult> started =
          recipe_that_runs(text, file, {.flags = {}, .function = function, .environment = environment}))
    return std::move(*started);
  throw InputError(
      file, fmt::format("has no configuration in what '{}' returns{}", printable(function), other_python));
}

}  // namespace

std::optional<PythonResult> recipe_that_runs(std::string_view text, const std::string& file,
                                             const PythonStart& start) {
  const auto starts = [](std::string_view called) {
    return called == "run.run" || called.ends_with("Experiment.add") || called.ends_with("exp.add") ||
           called == "pretrain" || called == "finetune";
  };
  PythonResult result = run_python(text, file, starts, start);
  for (TreeNode& call : result.root.members) {
    TreeNode* const named = member_of(call, "config");
    TreeNode* recipe = named != nullptr ? named : member_of(call, "0");
    // It returns its argument with the overrides of the command, which are set upon the recipe afterwards.
    if (recipe != nullptr && recipe->text.ends_with("process_config_with_overrides"))
      recipe = member_of(*recipe, "0");
    if (recipe == nullptr) continue;
    // A recipe that the program does not change has no members.
    const bool is_recipe = recipe->text.ends_with("_config") || recipe->text.ends_with("_recipe");
    if (recipe->members.empty() && !is_recipe) continue;
    TreeNode root = std::move(*recipe);
    result.root = std::move(root);
    return result;
  }
  return std::nullopt;
}

LaunchedRun read_recipe(PythonResult recipe, const std::string& function, const std::string& file,
                        const LaunchOptions& options) {
  TreeNode of_function;
  of_function.kind = TreeKind::scalar;
  of_function.key = "::function";
  of_function.text = function;
  of_function.quoted = true;
  recipe.root.kind = TreeKind::map;
  recipe.root.members.push_back(std::move(of_function));
  const TreeFile tree{file, std::move(recipe.root)};
  const bool titan = member_of(tree.root, "model_spec") != nullptr ||
                     tree.root.text.find("Trainer.Config") != std::string::npos ||
                     member_of(tree.root, "parallelism") != nullptr;
  LaunchedRun run = titan ? read_torchtitan_config(tree, options) : read_nemo_recipe(tree, options);
  for (PythonRemark& remark : recipe.remarks)
    run.remarks.push_back({LaunchRemarkKind::unresolved, std::move(remark.text), {file, remark.line}, ""});
  return run;
}

LaunchedRun read_python_config(std::string_view text, const std::string& file, const std::string& function,
                               const LaunchOptions& options) {
  std::string name = function;
  std::optional<PythonResult> started;
  const PythonEnvironment environment(options.environment.begin(), options.environment.end());
  if (name.empty()) {
    if (std::optional<TrainerLaunch> launch = trainer_script(text, file, {}, environment))
      return read_trainer_script(std::move(*launch), file, options);
    started = recipe_that_runs(text, file, {.flags = {}, .function = {}, .environment = environment});
    if (!started) name = function_of(text, file);
  }
  PythonResult result = started ? std::move(*started) : configuration_in(text, file, name, environment);
  return read_recipe(std::move(result), name, file, options);
}

}  // namespace headroom

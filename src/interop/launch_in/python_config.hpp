// Configurations that Python programs write out: of torchtitan, NeMo and Megatron-Bridge.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/python.hpp"

namespace headroom {

// Returns the configuration that a program hands to NeMo-Run ("run.run(recipe, executor=...)",
// "experiment.add(recipe)") or to Megatron-Bridge ("pretrain(config=recipe, forward_step_func=...)").
// Returns nothing if there is none.
std::optional<PythonResult> recipe_that_runs(std::string_view text, const std::string& file,
                                             const PythonStart& start);

// Reads a configuration as a run. `function`: what returned it, or empty.
LaunchedRun read_recipe(PythonResult recipe, const std::string& function, const std::string& file,
                        const LaunchOptions& options);

}  // namespace headroom

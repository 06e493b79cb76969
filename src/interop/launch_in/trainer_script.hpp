// Python scripts that start a Trainer of transformers, trl or unsloth.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/python.hpp"

namespace headroom {

// Returns the literal settings of a script, under the names of the Trainer's flags; nothing if it creates no
// arguments of a Trainer. Values that only a run knows stay as needs. Throws InputError if the file is not
// Python, or if the arguments come from a dictionary that only a run knows.
std::optional<TrainerLaunch> trainer_script(std::string_view text, const std::string& file,
                                            const PythonFlags& flags = {},
                                            const PythonEnvironment& environment = {});

// Sets one GPU where nothing says how many: python starts one process.
void assume_one_process(TrainerLaunch& launch, const FilePlace& at);

// Reads the run of a script that python starts without a launcher.
LaunchedRun read_trainer_script(TrainerLaunch launch, const std::string& file, const LaunchOptions& options);

}  // namespace headroom

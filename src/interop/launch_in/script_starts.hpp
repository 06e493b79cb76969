// The training runs that a bash script starts: the program of each, its words, and what reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/program.hpp"
#include "interop/launch_in/python.hpp"
#include "interop/launch_in/setting.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom {

// What reads the run that a program starts.
enum class ScriptReader : std::uint8_t {
  megatron,
  bridge,
  verl,
  configuration,
  trainer,
  engine,
  python,
  recipe,
  litgpt
};

// A training run that a script starts.
struct StartedRun {
  Program program;
  std::vector<Written> written;
  std::vector<shell::Value> extra;
  std::string model;  // of Megatron-MoE-ModelZoo
  std::optional<std::int64_t> devices;
  ScriptReader reader = ScriptReader::megatron;
  std::string config;                      // of ScriptReader::configuration
  std::string absent;                      // configuration that is named and not there
  std::optional<TrainerLaunch> of_python;  // of ScriptReader::python
  std::optional<PythonResult> recipe;      // of ScriptReader::recipe
  std::optional<Written> allocator;        // PYTORCH_CUDA_ALLOC_CONF
  std::vector<Written> environment;        // of checked_variables
  std::string of_defaults;                 // of Megatron-MoE-ModelZoo
};

struct ScriptStarts {
  std::vector<StartedRun> runs;
  std::vector<std::string> others;  // programs that are no training runs
  std::vector<std::string> alone;   // launchers without a program
};

ScriptStarts starts_of(const shell::Followed& script, const std::string& file);

// Throws InputError: the script starts no training run.
[[noreturn]] void refuse_without_run(const shell::Followed& script, ScriptStarts starts,
                                     const std::string& file);

}  // namespace headroom

// Runs of Megatron-MoE-ModelZoo: variables before sbatch_benchmarking.sh, and flags behind it
// [yanring/Megatron-MoE-ModelZoo, sbatch_benchmarking.sh, model_configs/benchmarking].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interop/launch_in/setting.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom {

struct ModelZooRun {
  std::string model;               // "Qwen3-235B-A22B"
  std::vector<Written> variables;  // as arguments of Megatron-LM
  std::vector<shell::Value> flags;
  std::string of_defaults;  // "TP=2, PP=8": what the script leaves to the configuration of its model
  std::optional<std::int64_t> devices;
};

// Nothing if it starts another script.
std::optional<ModelZooRun> model_zoo_run(const shell::Started& started, const FilePlace& at);

}  // namespace headroom

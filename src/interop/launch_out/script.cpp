#include "interop/launch_out/script.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "headroom/core/counts.hpp"

namespace headroom {

NodeGrid node_grid(const Request& request) {
  const std::int64_t job = devices(request.strategy);
  std::int64_t per_node = std::min(job, host_size(request.system));
  while (job % per_node != 0) --per_node;
  return {.nodes = job / per_node, .devices_per_node = per_node};
}

std::string file_title(const Launch& launch, const Request& request) {
  return fmt::format("# {} on {} GPUs of {}, for {}.\n",
                     request.model.name.empty() ? "The model" : request.model.name, devices(request.strategy),
                     request.system.name, launch.release);
}

std::vector<LaunchVariable> shared_environment(const Request& request) {
  std::vector<LaunchVariable> variables;
  if (request.software.memory.expandable_segments)
    variables.push_back({"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"});
  if (request.software.blocking_launches) variables.push_back({"CUDA_LAUNCH_BLOCKING", "1"});
  return variables;
}

std::string start_command(const Request& request, std::string_view script) {
  return std::string(node_grid(request).nodes > 1 ? "sbatch " : "bash ").append(script);
}

std::string script_text(const Script& script, const Launch& launch, const Request& request) {
  const NodeGrid grid = node_grid(request);
  const bool several = grid.nodes > 1;
  std::string text = "#!/bin/bash\n" + file_title(launch, request);
  if (several) {
    text += fmt::format(
        "#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node={}\n#SBATCH --exclusive\n",
        grid.nodes, grid.devices_per_node);
  }
  text += "set -euo pipefail\n";
  if (!script.variables.empty()) text += "\n# Only you know these.\n";
  for (const auto& [name, value, what] : script.variables)
    text += fmt::format("{}=\"${{{}:-{}}}\"  # {}\n", name, name, value, what);
  if (!launch.environment.empty()) text += "\n";
  for (const auto& [name, value] : launch.environment)
    text += value.empty() ? fmt::format("unset {}\n", name) : fmt::format("export {}={}\n", name, value);
  std::string arguments;
  for (const auto& [name, words] : script.arrays) {
    if (words.empty()) continue;
    text += fmt::format("\n{}=(\n", name);
    for (const std::string& word : words) text += "  " + word + "\n";
    text += ")\n";
    arguments += fmt::format(" \"${{{}[@]}}\"", name);
  }
  text += "\n" + script.setup;
  if (!script.started.empty()) return text + script.started + arguments + "\n";
  if (several) {
    text += "MASTER_ADDR=\"$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed -n 1p)\"\n";
    text += fmt::format(
        "srun torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint "
        "\"$MASTER_ADDR:29500\" \\\n  ",
        grid.nodes, grid.devices_per_node);
  } else {
    text += fmt::format("torchrun --standalone --nproc-per-node {} \\\n  ", grid.devices_per_node);
  }
  text += script.program;
  if (!arguments.empty()) text += " \\\n " + arguments;
  return text + "\n";
}

}  // namespace headroom

// Megatron-LM's arguments as a map of YAML, with the variables of a launcher in them (Megatron-MoE-ModelZoo).
#include <algorithm>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/megatron_in.hpp"

namespace headroom {

LaunchedRun read_megatron_yaml(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "Megatron-LM", "megatron-core-2025");
  MegatronArguments arguments;
  arguments.program = "pretrain_gpt.py";
  for (Written& setting : flattened(*member_of(file.root, "MODEL_ARGS"), file.file)) {
    const std::size_t start = setting.name.find_first_not_of('_');  // dashes of a flag are underscores by now
    if (start == std::string::npos) continue;
    setting.name.erase(0, start);
    const std::string value = text_of_values(setting);
    if (value == "false" || value == "False") continue;
    if (value == "true" || value == "True") setting.values.clear();
    if (const std::size_t variable = value.find("${"); variable != std::string::npos)
      setting.unknown = "needs " + value.substr(variable) + ": give it with --env NAME=VALUE";
    arguments.written.push_back(std::move(setting));
  }
  if (const TreeNode* const variables = member_of(file.root, "ENV_VARS")) {
    for (const Written& setting : flattened(*variables, file.file)) {
      if (is_allocator_variable(setting.name)) arguments.allocator = setting;
      if (contains(checked_variables, setting.name)) arguments.environment.push_back(setting);
    }
  }
  read_megatron_arguments(arguments, builder);
  return builder.finish(options);
}

}  // namespace headroom

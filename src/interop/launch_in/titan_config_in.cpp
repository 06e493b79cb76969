// torchtitan's Python registry (config_registry.py::function): the same settings as keyword arguments.
#include <algorithm>

#include <fmt/format.h>

#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// "torchtitan/models/llama3/config_registry.py" -> "llama3"; else what the function's name starts with.
std::string model_of_path(const std::string& file) {
  const std::size_t end = file.rfind("/config_registry");
  if (end == std::string::npos) return {};
  const std::size_t start = file.rfind('/', end - 1);
  return file.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1));
}

}  // namespace

LaunchedRun read_torchtitan_config(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "torchtitan", "torchtitan-2025");
  std::vector<Written> written = flattened(file.root, file.file);
  std::string precision;
  std::optional<Written> precision_at;
  for (Written& setting : written) {
    std::string& name = setting.name;
    if (name.ends_with(".()")) {
      name.resize(name.size() - 3);
      const std::string called = setting.values.front();
      if (name == "activation_checkpoint") {
        // SelectiveAC.Config(), FullAC.Config(): the class is the mode.
        const bool full = called.find("FullAC") != std::string::npos;
        const bool selective = called.find("SelectiveAC") != std::string::npos;
        const bool budget = called.find("MemoryBudgetAC") != std::string::npos;
        if (full || selective || budget) {
          name = "activation_checkpoint.mode";
          setting.values = {full ? "full" : selective ? "selective" : "memory_budget"};
          continue;
        }
      }
      if (called.find("Float8Linear") != std::string::npos) precision = "fp8";
      if (called.find("MXFP8") != std::string::npos || called.find("MXLinear") != std::string::npos)
        precision = "mxfp8";
      if (called.find("NVFP4Linear") != std::string::npos)
        builder.leave_out(setting, "linears in NVFP4, which the stack does not have: counted in BF16");
      if (!precision.empty() && !precision_at) precision_at = setting;
      name = "called." + name;
    }
  }
  if (precision_at) builder.set("precision", precision, &*precision_at);
  // activation_checkpoint=None is no checkpointing, which a flat list does not show.
  const TreeNode* const none = member_of(file.root, "activation_checkpoint");
  if (none != nullptr && none->kind == TreeKind::none)
    written.push_back(
        {"activation_checkpoint.mode", {"none"}, "activation_checkpoint=None", {file.file, none->line}, {}});
  std::erase_if(written, [](const Written& setting) { return setting.name.starts_with("called"); });
  // A class of the registry is by op unless it says more.
  const auto is_option = [](const Written& setting) {
    return setting.name.starts_with("activation_checkpoint.selective_ac");
  };
  const auto mode = std::find_if(written.begin(), written.end(), [](const Written& setting) {
    return setting.name == "activation_checkpoint.mode";
  });
  if (mode != written.end() && std::none_of(written.begin(), written.end(), is_option)) {
    Written option = *mode;
    option.name = "activation_checkpoint.selective_ac_option";
    option.values = {"op"};
    written.push_back(std::move(option));
  }
  TreeRun run(std::move(written), builder);
  std::string model = model_of_path(file.file);
  const Written* const flavor = run.find({"model_spec.0", "model_spec.flavor"});
  const std::string function =
      member_of(file.root, "::function") == nullptr ? "" : member_of(file.root, "::function")->text;
  const std::string flavor_text = flavor == nullptr ? "" : text_of_values(*flavor);
  if (model.empty() || model == ".") {
    // "deepseek_v3_16b" of the flavor "16B".
    model = function;
    const std::string end = '_' + lower_case(flavor_text);
    if (const std::size_t at = model.find(end); at != std::string::npos) model.resize(at);
  }
  run.find("::function");
  RunScale scale;
  if (flavor != nullptr) scale.layers = take_titan_model(model, flavor_text, flavor, file.file, builder);
  take_titan(run, scale);
  settle(scale, builder);
  static constexpr LaunchKey more[] = {{"model_spec.*"}, {"hf_assets_path"}, {"compile.*"},   {"metrics.*"},
                                       {"profiling.*"},  {"validator.*"},    {"dump_folder"}, {"trainer.*"},
                                       {"loss.*"},       {"debug.*"}};
  std::vector<LaunchKey> keys(titan_keys().begin(), titan_keys().end());
  keys.insert(keys.end(), std::begin(more), std::end(more));
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace headroom

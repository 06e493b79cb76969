#include "interop/launch_in/absent_parts.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/model/adapters.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/recompute_modules.hpp"

namespace headroom {
namespace {

LaunchSetting* setting_of(LaunchedRun& run, std::string_view field) {
  const auto found = std::find_if(run.strategy.begin(), run.strategy.end(),
                                  [&](const LaunchSetting& it) { return it.field == field; });
  return found == run.strategy.end() ? nullptr : &*found;
}

void add_name(std::string& list, std::string_view name) {
  list += (list.empty() ? "" : ",") + std::string(name);
}

// Drops targets that are written but that no layer of the model has, where it has others. Trainers skip them
// [PEFT, tuners/tuners_utils.py, inject_adapter; Megatron-Bridge, peft/module_matcher.py].
void drop_absent_targets(LaunchedRun& run, const ModelLayers& layers) {
  LaunchSetting* const setting = setting_of(run, "lora_targets");
  if (setting == nullptr) return;
  const auto has = [&](std::string_view name) {
    const LoraTarget* const target = find_target(name);
    return target == nullptr || adapts(layers, *target);
  };
  std::string kept;
  std::string dropped;
  for (std::string_view name : parts_of(setting->value, ',')) {
    // MLA without a latent rank of queries has one linear for them [DeepSeek-V2-Lite, modeling_deepseek.py].
    if (name == "q_proj" && !has(name) && has("q_b_proj") && !has("q_a_proj")) name = "q_b_proj";
    const bool written = setting->written.find(name) != std::string::npos;
    add_name(has(name) || !written ? kept : dropped, name);
  }
  if (kept.empty()) return;
  setting->value = kept;
  if (dropped.empty()) return;
  run.remarks.push_back({LaunchRemarkKind::implied,
                         fmt::format("adapters pass over {}, which no layer of the model has", dropped),
                         setting->at, "lora_targets"});
}

// Drops modules of an MLP or of experts that no layer has. Megatron-Core accepts their names for every model,
// and each kind of layer looks at its own [megatron/core/transformer/transformer_layer.py and
// moe/moe_layer.py, __init__].
void drop_absent_modules(LaunchedRun& run, const ModelLayers& layers) {
  constexpr std::array<std::string_view, 4> of_some_layers{"mlp", "moe", "shared_experts", "moe_act"};
  LaunchSetting* const setting = setting_of(run, "recompute_ops");
  if (setting == nullptr) return;
  std::string kept;
  std::string dropped;
  for (const std::string_view name : parts_of(setting->value, ',')) {
    const RecomputeModule* const module = find_module(name);
    const bool absent = module != nullptr && contains(of_some_layers, name) &&
                        std::none_of(layers.kinds.begin(), layers.kinds.end(),
                                     [&](const LayerKind& kind) { return ops_of(*module, kind.ops) != 0; });
    add_name(absent ? dropped : kept, name);
  }
  if (dropped.empty()) return;
  run.remarks.push_back(
      {LaunchRemarkKind::implied,
       fmt::format("recomputation passes over {}, which no layer of the model has", dropped), setting->at,
       "recompute_ops"});
  if (!kept.empty()) {
    setting->value = kept;
    return;
  }
  setting->field = "recompute";
  setting->value = "none";
}

}  // namespace

void drop_absent_parts(LaunchedRun& run) {
  if (!run.model) return;
  const ModelLayers layers = layers_of(*run.model);
  drop_absent_targets(run, layers);
  drop_absent_modules(run, layers);
}

}  // namespace headroom

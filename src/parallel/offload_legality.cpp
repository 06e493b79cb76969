#include "headroom/parallel/offload_legality.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "parallel/rules.hpp"

namespace headroom {
namespace {

void check_optimizer(Rules& rules, const Strategy& strategy) {
  const Optimizer& optimizer = strategy.optimizer;
  const bool offloads = strategy.offload.optimizer.value > 0;
  rules.require(!offloads || !steps_matrices(optimizer.kind), "optimizer_offload_fraction", [&] {
    return "must be 0 for `optimizer` " + std::string(name_of(optimizer.kind)) + ", which no CPU steps here";
  });
  rules.require(!offloads || optimizer.main_params != MainParams::none, "optimizer_offload_fraction",
                "must be 0 where `main_params_dtype` is none");
  rules.require(offloads || !strategy.offload.overlaps, "overlap_cpu_optimizer",
                "needs `optimizer_offload_fraction`");
}

void check_parameters(Rules& rules, const Strategy& strategy) {
  if (!strategy.offload.parameters) return;
  rules.require(strategy.data_sharding == DataSharding::zero3, "offload_parameters",
                "needs `data_sharding` zero3: only shards of weights are fetched unit by unit");
  rules.require(strategy.offload.optimizer.value == 1, "offload_parameters",
                "needs `optimizer_offload_fraction` 1: the host steps what it keeps");
  rules.require(strategy.pipeline_parallel <= 1, "offload_parameters",
                "needs `pipeline_parallel` 1: passes of a pipeline do not gather weights");
}

// Whether the ops of a part keep anything for a backward pass of a kind that runs those again.
bool saves_anything(const LayerKind& kind, OpSet part, const RecomputedOps& recomputed) {
  for (ValueId value = 0; value < static_cast<ValueId>(kind.ops.values().size()); ++value) {
    const ValueUse use = use_of(kind.ops, value);
    const Fate fate = fate_of(use, recomputed);
    const auto index = static_cast<std::size_t>(value);
    const bool cached = recomputed.cached.contains(index) || recomputed.half_cached.contains(index);
    if (((fate.needed && fate.kept) || cached) && (holders_of(use, recomputed) & part) != 0) return true;
  }
  return false;
}

bool saves_anything(const ModelLayers& layers, const OffloadModule& part, const Recomputation& recompute,
                    const Sharding& sharding) {
  return std::any_of(layers.kinds.begin(), layers.kinds.end(), [&](const LayerKind& kind) {
    return kind.position == KindPosition::layer &&
           saves_anything(kind, ops_of(part, kind.ops), recomputed_ops_of(kind, recompute, sharding));
  });
}

void check_schedule(Rules& rules, const Strategy& strategy, const char* field) {
  rules.require(!has_weight_passes(strategy.schedule), field, [&] {
    return "does not go with `schedule` " + std::string(name_of(strategy.schedule)) +
           ", whose passes for weights read what forward passes saved";
  });
}

void check_modules(Rules& rules, const Transformer& model, const Strategy& strategy) {
  const std::vector<std::string>& modules = strategy.offload.modules;
  if (modules.empty()) return;
  const char* const field = "offload_modules";
  const ModelLayers layers = layers_of(model, strategy);
  std::vector<std::string_view> known = parts_of(layers);
  known.push_back(layer_input);
  for (auto it = modules.begin(); it != modules.end(); ++it) {
    rules.require(std::find(modules.begin(), it, *it) == it, field,
                  [&] { return "names '" + *it + "' twice"; });
    rules.require(contains(known, *it), field, [&] {
      return "'" + *it + "' is no module that these layers offload" + did_you_mean(*it, known) +
             "; they are " + joined(known);
    });
  }
  rules.require(!contains(modules, "attn_proj") || contains(modules, "core_attn"), field,
                "attn_proj needs core_attn, which saves the same tensor");
  check_schedule(rules, strategy, field);
}

// [Megatron-LM, core/transformer/transformer_config.py: --cpu-offloading-num-layers]
void check_layers(Rules& rules, const Transformer& model, const Strategy& strategy) {
  const std::int64_t layers = strategy.offload.layers;
  const char* const field = "offload_layers";
  rules.require(layers >= 0 && layers < model.layers, field, [&] {
    return "must be less than the " + std::to_string(model.layers) + " layers, not " + std::to_string(layers);
  });
  if (layers <= 0) return;
  rules.require(strategy.pipeline_parallel <= 1, field, "needs `pipeline_parallel` 1");
  rules.require(strategy.offload.modules.empty(), field,
                "does not go with `offload_modules`: all that these layers save is offloaded");
  check_schedule(rules, strategy, field);
}

}  // namespace

std::string offload_rule(const Transformer& model, const Strategy& strategy, const Recomputation& recompute) {
  const std::vector<std::string>& modules = strategy.offload.modules;
  if (strategy.offload.layers > 0 && recompute.policy != RecomputePolicy::none)
    return "needs `recompute` none";
  if (modules.empty()) return {};
  const bool full = recompute.policy == RecomputePolicy::full;
  const bool checkpoints = contains(modules, layer_input);
  if (checkpoints && !full) return "layer_input needs `recompute` full";
  if (full && recomputes_all_layers(recompute) && (modules.size() > 1 || !checkpoints)) {
    return "must be layer_input alone where all layers have `recompute` full and save nothing else";
  }
  if (recompute.window) return "does not go with `recompute_window`";
  if (recompute.policy == RecomputePolicy::none || !recomputes_all_layers(recompute)) return {};
  const ModelLayers layers = layers_of(model, strategy);
  for (const std::string& name : modules) {
    const OffloadModule* const part = find_offload_module(name);
    if (part != nullptr && contains(parts_of(layers), name) &&
        !saves_anything(layers, *part, recompute, sharding_of(model, strategy)))
      return name + " saves nothing under this recomputation: leave it out";
  }
  return {};
}

std::vector<Problem> offload_illegalities(const Transformer& model, const Strategy& strategy) {
  Rules rules;
  check_optimizer(rules, strategy);
  check_parameters(rules, strategy);
  check_modules(rules, model, strategy);
  check_layers(rules, model, strategy);
  if (std::string rule = offload_rule(model, strategy, strategy.recompute); !rule.empty())
    rules.problems.push_back({activations_field(strategy.offload), std::move(rule)});
  return std::move(rules.problems);
}

std::vector<Problem> offload_illegalities(const System& system, const Strategy& strategy) {
  const Offload& offload = strategy.offload;
  if (!offloads(offload) || system.host) return {};
  const char* const field = offload.optimizer.value > 0 ? "optimizer_offload_fraction"
                            : offload.parameters        ? "offload_parameters"
                                                        : activations_field(offload);
  return {{field, "needs the host of the system, which " + system.name +
                      " does not say: its memory, memory_bandwidth, device_link and source"}};
}

}  // namespace headroom

// Modules of a layer whose saved tensors Megatron-Core can offload to the host between forward and backward
// pass, as ops of our tables [--fine-grained-activation-offloading, --offload-modules,
// docs/user-guide/features/fine_grained_activation_offloading.md]. A module offloads what its ops save,
// unless an op outside saves the tensor too.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/recompute_modules.hpp"

namespace headroom {

struct OffloadModule {
  std::string_view name;
  std::string_view ops;  // names of ops, separated by spaces; empty: core attention
};

inline constexpr std::array offload_modules{
    OffloadModule{"attn_norm", "norm_1"},
    OffloadModule{"qkv_linear", "qkv q_down q_latent_norm q_up kv_down kv_latent_norm kv_up"},
    OffloadModule{"core_attn", ""},
    OffloadModule{"attn_proj", "projection"},
    OffloadModule{"mlp_norm", "norm_2"},
    OffloadModule{"expert_fc1", "expert_up"},
    OffloadModule{"moe_act", "expert_clamp expert_activation weigh"},
};

// The input of a checkpoint under full recomputation, which belongs to no module of a layer.
inline constexpr std::string_view layer_input = "layer_input";

constexpr const OffloadModule* find_offload_module(std::string_view name) {
  for (const OffloadModule& part : offload_modules) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

// Returns the ops of a module in a table; empty if the table has none of them.
constexpr OpSet ops_of(const OffloadModule& part, const OpTable& table) { return ops_among(part.ops, table); }

// Returns the names of the modules that at least one kind of layers has.
inline std::vector<std::string_view> parts_of(const ModelLayers& layers) {
  std::vector<std::string_view> names;
  for (const OffloadModule& part : offload_modules) {
    const bool had = std::any_of(layers.kinds.begin(), layers.kinds.end(), [&](const LayerKind& kind) {
      return kind.position == KindPosition::layer && ops_of(part, kind.ops) != 0;
    });
    if (had) names.push_back(part.name);
  }
  return names;
}

inline OpSet offloading_ops(const std::vector<std::string>& modules, const OpTable& table) {
  OpSet set;
  for (const std::string& name : modules) {
    if (const OffloadModule* const part = find_offload_module(name)) set |= ops_of(*part, table);
  }
  return set;
}

// Returns the ops that a kept value waits for: those that save it, and those that are recomputed from it.
constexpr OpSet holders_of(const ValueUse& use, const RecomputedOps& recomputed) {
  return (use.savers & ~recomputed.ops) | (use.readers & recomputed.ops);
}

}  // namespace headroom

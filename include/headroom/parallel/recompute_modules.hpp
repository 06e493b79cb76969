// Modules of a layer that Megatron-Core can recompute, as ops of our tables [--recompute-modules,
// core/transformer/transformer_config.py].
#pragma once

#include <array>
#include <string_view>

#include "headroom/model/parts/mixers.hpp"
#include "headroom/parallel/compose.hpp"

namespace headroom {

inline constexpr auto recompute_modules = with_those_of_mixers(
    std::array{
        RecomputeModule{"core_attn", false, ""},
        RecomputeModule{"mlp", false, "mlp_up clamp activation mlp_down"},
        RecomputeModule{
            "moe", false,
            "router route latent_down permute dispatch sort pad_rows scale_inputs expert_up expert_clamp "
            "expert_activation weigh expert_down unpad_rows weigh_output "
            "unsort combine unpermute cast_sums cast_back latent_up "
            "shared_up shared_clamp shared_activation shared_down shared_gate apply_shared_gate add_shared"},
        RecomputeModule{"shared_experts", false,
                        "shared_up shared_clamp shared_activation shared_down shared_gate apply_shared_gate"},
        RecomputeModule{"moe_act", true, "expert_clamp expert_activation"},
        RecomputeModule{"layernorm", true, "norm_1 norm_2"},
        RecomputeModule{"mla_up_proj", true, "q_latent_norm q_up kv_latent_norm kv_up mla_rotary"},
    },
    recompute_modules_of_mixers);

// Returns whether an op belongs to a module with this list of ops. An empty list is core attention.
constexpr bool is_among(std::string_view ops, const Op& op) {
  if (ops.empty()) return op.core_attention;
  // The ops of an adapter belong to the linear that it adapts.
  const std::string_view name = op.name.substr(0, op.name.find("_lora_"));
  for (std::size_t at = ops.find(name); at != std::string_view::npos; at = ops.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool starts = at == 0 || ops[at - 1] == ' ';
    if (starts && (end == ops.size() || ops[end] == ' ')) return true;
  }
  return false;
}

constexpr const RecomputeModule* find_module(std::string_view name) {
  for (const RecomputeModule& part : recompute_modules) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

constexpr OpSet ops_among(std::string_view ops, const OpTable& table) {
  OpSet set;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (is_among(ops, table.ops()[i])) set |= op_bit(i);
  }
  return set;
}

// Returns the ops of a module in a table; empty if the table has none of them.
constexpr OpSet ops_of(const RecomputeModule& part, const OpTable& table) {
  return ops_among(part.ops, table);
}

}  // namespace headroom

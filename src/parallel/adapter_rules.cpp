#include "parallel/adapter_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"

namespace headroom {
namespace {

std::vector<std::string_view> names_of_targets() {
  std::vector<std::string_view> names{every_linear};
  for (const LoraTarget& target : lora_targets) {
    names.push_back(target.name);
    if (!target.also.empty()) names.push_back(target.also);
  }
  return names;
}

// Whether a linear of layers has the name.
bool any_linear(const ModelLayers& layers, const LoraTarget& target) {
  return std::any_of(layers.kinds.begin(), layers.kinds.end(), [&](const LayerKind& kind) {
    return is_layer(kind) && std::any_of(kind.ops.ops().begin(), kind.ops.ops().end(),
                                         [&](const Op& op) { return adapts(kind.ops, op, target); });
  });
}

// What is wrong with one of the names, the others of which come before it.
std::string rule_of(const std::string& name, std::span<const std::string> before, const ModelLayers& layers) {
  const LoraTarget* const target = find_target(name);
  if (name == every_linear) return before.empty() ? "" : "names all linears beside others";
  if (target == nullptr) {
    return "'" + name + "' is none of " + joined(names_of_targets()) + did_you_mean(name, names_of_targets());
  }
  for (const std::string& other : before) {
    std::string again = "names a linear of '" + other + "' again: '" + name + "'";
    if (other == every_linear) return again;
    const LoraTarget* const known = find_target(other);
    if (known == nullptr) continue;
    const bool same_part =
        known->part == target->part || known->part == all_parts || target->part == all_parts;
    if (known->ops == target->ops && same_part) return again;
  }
  if (!any_linear(layers, *target)) return "names '" + name + "', which no layer of this model has";
  return {};
}

}  // namespace

void check_adapters(Rules& rules, const Transformer& model, const Strategy& strategy) {
  const Lora& lora = strategy.lora;
  if (lora == Lora{}) return;
  const bool adapts = trains_adapters(lora);
  rules.require(lora.rank >= 0, "lora_rank",
                [&] { return "must be at least 1, not " + std::to_string(lora.rank); });
  rules.require(adapts || lora.targets.empty(), "lora_targets", "needs `lora_rank`");
  rules.require(adapts || lora.dropout.value == 0, "lora_dropout", "needs `lora_rank`");
  rules.require(adapts || lora.base == BaseDtype::bf16, "base_dtype",
                "must be bf16 without `lora_rank`: weights that are trained are not quantized");
  if (!adapts) return;
  if (!lora.targets.empty()) {
    const ModelLayers layers = layers_of(model);
    for (std::size_t i = 0; i < lora.targets.size(); ++i) {
      const std::string rule = rule_of(lora.targets[i], std::span(lora.targets).first(i), layers);
      rules.require(rule.empty(), "lora_targets", rule);
    }
  }
  const std::int64_t t = strategy.tensor_parallel;
  rules.require(t < 1 || lora.rank % t == 0, "lora_rank", [&] {
    return "must be a multiple of the " + std::to_string(t) +
           " `tensor_parallel` ranks, which divide it, not " + std::to_string(lora.rank);
  });
  rules.require(lora.rank <= model.hidden, "lora_rank",
                [&] { return "must not exceed the hidden size of " + std::to_string(model.hidden); });
  rules.require(lora.base == BaseDtype::bf16 || strategy.precision == Precision::bf16, "precision",
                "must be bf16 with `base_dtype` nf4, whose weights are made BF16 for each use");
  rules.require(!model.architecture.kernels.weight_copies, "lora_rank",
                "needs weights of 16 bits, where `kernels.weight_copies` keeps fp32 weights");
  rules.require(!has_weight_passes(strategy.schedule), "schedule", [&] {
    return "must be one whose backward passes are whole with `lora_rank`, not " +
           std::string(name_of(strategy.schedule));
  });
  rules.require(!strategy.save_gathered_input, "save_gathered_input",
                "does not go with `lora_rank`: frozen linears save no input");
}

}  // namespace headroom

// Helpers to write rows of rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/legality.hpp"

namespace headroom {

namespace rules {

// Returns the values of a text, in order: counts, texts and enumerators.
template <class... Values>
std::vector<std::string> shown(const Values&... values) {
  const auto text = [](const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_integral_v<Value>) {
      return std::to_string(value);
    } else if constexpr (std::is_enum_v<Value>) {
      return std::string(name_of(value));
    } else {
      return std::string(value);
    }
  };
  return {text(values)...};
}

// Visits one case: the strategy.
inline void once(const RuleCase& it, VisitCase visit) { visit(it); }

// Returns whether ranks split a size evenly. Another rule refuses fewer than one rank.
constexpr bool divides(std::int64_t parts, std::int64_t whole) { return parts < 1 || whole % parts == 0; }

// Returns " of 'wide' layers" if a model has several kinds of layers, else nothing.
inline std::string of_kind(const RuleCase& it) {
  const std::string_view kind = it.layer == nullptr ? std::string_view() : it.layer->kind;
  return kind.empty() ? std::string() : " of '" + std::string(kind) + "' layers";
}

// Calls visit(case) for each kind of layer.
template <class Visit>
void each_layer(const RuleCase& it, const Visit& visit) {
  RuleCase of = it;
  const auto take = [&](const auto& layer, std::string_view kind) {
    const LayerSizes sizes{
        kind, layer.feedforward, layer.heads, layer.key_value_heads, layer.head_size, layer.architecture};
    of.layer = &sizes;
    visit(static_cast<const RuleCase&>(of));
  };
  if (it.model.layer_kinds.empty()) take(it.model, {});
  for (const LayerDescription& kind : it.model.layer_kinds) take(kind, kind.name);
}

// Calls visit(case) for each name of a list.
inline void each_name(const RuleCase& it, const std::vector<std::string>& names, VisitCase visit) {
  RuleCase of = it;
  for (const std::string& name : names) {
    of.name = name;
    visit(of);
    ++of.place;
  }
}

// The topics of each file.
std::span<const Topic> of_ranks();
std::span<const Topic> of_pipeline();
std::span<const Topic> of_recompute();
std::span<const Topic> of_state();
std::span<const Topic> of_precision();
std::span<const Topic> of_stack();
std::span<const Topic> of_launchers();        // Megatron-LM and what is built on it
std::span<const Topic> of_torch_launchers();  // torchtitan, DeepSpeed, accelerate

}  // namespace rules
}  // namespace headroom

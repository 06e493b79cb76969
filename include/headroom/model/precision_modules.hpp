// The linears of a model that may stay at 16 bits where the others are in fewer: modules by the names that Megatron-LM's patterns meet
// [--te-precision-config-file, megatron/core/extensions/TransformerEngineMixedPrecision.md], as ops of our tables.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom {

// mtp: all that predicts tokens further ahead. The others are linears of layers.
enum class PrecisionModule : std::uint8_t {
  attention,
  linear_qkv,
  linear_proj,
  mamba,
  in_proj,
  out_proj,
  mlp,
  experts,
  shared_experts,
  latent_proj,
  mtp,
};

struct PrecisionModuleRow {
  PrecisionModule module;
  std::string_view name;
  std::string_view ops;  // with spaces between
};

inline constexpr std::array<PrecisionModuleRow, 11> precision_modules{{
    {PrecisionModule::attention, "attention", "qkv q_down q_up kv_down kv_up projection"},
    {PrecisionModule::linear_qkv, "linear_qkv", "qkv q_down q_up kv_down kv_up"},
    {PrecisionModule::linear_proj, "linear_proj", "projection"},
    {PrecisionModule::mamba, "mamba", "in_proj out_proj"},
    {PrecisionModule::in_proj, "in_proj", "in_proj"},
    {PrecisionModule::out_proj, "out_proj", "out_proj"},
    {PrecisionModule::mlp, "mlp", "mlp_up mlp_down"},
    {PrecisionModule::experts, "experts", "expert_up expert_down"},
    {PrecisionModule::shared_experts, "shared_experts", "shared_up shared_down"},
    {PrecisionModule::latent_proj, "latent_proj", "latent_down latent_up"},
    {PrecisionModule::mtp, "mtp", ""},
}};

constexpr const PrecisionModuleRow& row_of(PrecisionModule module) {
  return precision_modules[static_cast<std::size_t>(module)];
}

// Some of them.
class PrecisionModules {
 public:
  constexpr PrecisionModules() = default;
  constexpr PrecisionModules(PrecisionModule module) {
    insert(module);
  }  // NOLINT(google-explicit-constructor)

  constexpr void insert(PrecisionModule module) { bits_ |= bit_of(module); }
  [[nodiscard]] constexpr bool contains(PrecisionModule module) const {
    return (bits_ & bit_of(module)) != 0;
  }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  friend constexpr auto operator<=>(const PrecisionModules&, const PrecisionModules&) = default;

 private:
  static constexpr std::uint32_t bit_of(PrecisionModule module) {
    return std::uint32_t{1} << static_cast<std::uint32_t>(module);
  }
  std::uint32_t bits_ = 0;
};

// Whether an op is a linear of one of them.
constexpr bool is_among(const PrecisionModules& modules, const Op& op) {
  if (op.kind != OpKind::linear) return false;
  for (const PrecisionModuleRow& row : precision_modules) {
    if (!modules.contains(row.module)) continue;
    for (std::string_view rest = row.ops; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == op.name) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return false;
}

template <>
inline constexpr std::array<Spelling<PrecisionModule>, precision_modules.size()> spellings<PrecisionModule>{{
    {PrecisionModule::attention, precision_modules[0].name},
    {PrecisionModule::linear_qkv, precision_modules[1].name},
    {PrecisionModule::linear_proj, precision_modules[2].name},
    {PrecisionModule::mamba, precision_modules[3].name},
    {PrecisionModule::in_proj, precision_modules[4].name},
    {PrecisionModule::out_proj, precision_modules[5].name},
    {PrecisionModule::mlp, precision_modules[6].name},
    {PrecisionModule::experts, precision_modules[7].name},
    {PrecisionModule::shared_experts, precision_modules[8].name},
    {PrecisionModule::latent_proj, precision_modules[9].name},
    {PrecisionModule::mtp, precision_modules[10].name},
}};

inline std::vector<std::string_view> names_of(const PrecisionModules& modules) {
  std::vector<std::string_view> names;
  for (const auto& [module, name] : spellings<PrecisionModule>) {
    if (modules.contains(module)) names.push_back(name);
  }
  return names;
}

}  // namespace headroom

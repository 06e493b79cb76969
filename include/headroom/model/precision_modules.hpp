// Linears of a model that may stay at 16 bits in a narrower precision: modules, by the names that
// Megatron-LM's patterns match [--te-precision-config-file,
// megatron/core/extensions/TransformerEngineMixedPrecision.md], as ops of the op tables.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/model/parts/mixers.hpp"

namespace headroom {

// Modules that may stay at 16 bits. mtp: all of multi-token prediction. The others are linears of layers.
// Those of mixers follow the last (parts/mixers.hpp).
enum class PrecisionModule : std::uint8_t {
  attention,
  linear_qkv,
  linear_proj,
  mlp,
  experts,
  shared_experts,
  latent_proj,
  mtp,
  first_of_mixers,
};

struct PrecisionModuleRow {
  PrecisionModule module;
  std::string_view name;
  std::string_view ops;  // with spaces between
};

// Table of modules, in the order in which they are listed.
inline constexpr auto precision_modules = [] {
  FixedVector<PrecisionModuleRow, 32> rows{
      {PrecisionModule::attention, "attention", "qkv q_down q_up kv_down kv_up projection"},
      {PrecisionModule::linear_qkv, "linear_qkv", "qkv q_down q_up kv_down kv_up"},
      {PrecisionModule::linear_proj, "linear_proj", "projection"}};
  auto next = static_cast<std::uint8_t>(PrecisionModule::first_of_mixers);
  for (const LinearGroup& group : linears_of_mixers)
    rows.push_back({static_cast<PrecisionModule>(next++), group.name, group.ops});
  for (const PrecisionModuleRow& row :
       {PrecisionModuleRow{PrecisionModule::mlp, "mlp", "mlp_up mlp_down"},
        PrecisionModuleRow{PrecisionModule::experts, "experts", "expert_up expert_down"},
        PrecisionModuleRow{PrecisionModule::shared_experts, "shared_experts", "shared_up shared_down"},
        PrecisionModuleRow{PrecisionModule::latent_proj, "latent_proj", "latent_down latent_up"},
        PrecisionModuleRow{PrecisionModule::mtp, "mtp", ""}})
    rows.push_back(row);
  return rows;
}();

// A set of modules.
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

template <>
inline constexpr auto spellings<PrecisionModule> = [] {
  std::array<Spelling<PrecisionModule>, precision_modules.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {precision_modules[i].module, precision_modules[i].name};
  return all;
}();

inline std::vector<std::string_view> names_of(const PrecisionModules& modules) {
  std::vector<std::string_view> names;
  for (const auto& [module, name] : spellings<PrecisionModule>) {
    if (modules.contains(module)) names.push_back(name);
  }
  return names;
}

}  // namespace headroom

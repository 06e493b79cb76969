// Hybrid pattern: layers of one part as a text with a letter for each, as Megatron-LM and Nemotron's
// config.json write them [Megatron-LM, core/models/hybrid/hybrid_layer_allocation.py, --hybrid-layer-pattern,
// formerly --hybrid-override-pattern].
//
//   *  attention     -  MLP     E  mixture of experts     the letters of other mixers (parts/mixers.hpp)
//
// A | divides pipeline stages, and the text after a / describes multi-token prediction. Neither describes the
// model's layers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// Part of a layer that has only one. Other mixers follow the last.
enum class HybridLayer : std::uint8_t { attention, mlp, experts, first_of_mixers };

struct HybridLayerRow {
  HybridLayer layer;
  std::string_view name;  // of its kind in model files
  char letter;            // '\0': no pattern has it
};

inline constexpr auto hybrid_layer_rows = [] {
  FixedVector<HybridLayerRow, 12> rows;
  auto next = static_cast<std::uint8_t>(HybridLayer::first_of_mixers);
  for_each_mixer([&](const auto& row, auto) {
    rows.push_back({static_cast<HybridLayer>(next++), row.name, row.letter});
  });
  rows.push_back({HybridLayer::attention, "attention", '*'});
  rows.push_back({HybridLayer::mlp, "mlp", '-'});
  rows.push_back({HybridLayer::experts, "moe", 'E'});
  return rows;
}();
template <>
inline constexpr auto spellings<HybridLayer> = [] {
  std::array<Spelling<HybridLayer>, hybrid_layer_rows.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {hybrid_layer_rows[i].layer, hybrid_layer_rows[i].name};
  return all;
}();

LayerParts part_of(HybridLayer layer);

// Rule that a text must satisfy for hybrid_layers().
std::string hybrid_pattern_rule();

// Returns the layers in the model's order. Returns nothing for an unknown letter or for no layers.
std::optional<std::vector<HybridLayer>> hybrid_layers(std::string_view pattern);

// Returns the pattern of a model whose layers each have one part, and nothing for any other model. Stages are
// separated if there are several. Each depth of multi-token prediction has attention and an MLP, or the last
// layer if the model lacks one of them. Expects `layers_by_stage` to add up to the model's layers.
std::optional<std::string> hybrid_pattern(const Transformer& model,
                                          std::span<const std::int64_t> layers_by_stage);

}  // namespace headroom

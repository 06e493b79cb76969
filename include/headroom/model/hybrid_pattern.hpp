// Layers of one part as a text with a letter for each, as Megatron-LM and Nemotron's config.json write them
// [Megatron-LM, core/models/hybrid/hybrid_layer_allocation.py, --hybrid-layer-pattern, formerly --hybrid-override-pattern].
//
//   M  Mamba     *  attention     -  MLP     E  mixture of experts
//
// A | divides pipeline stages, and what stands behind a / is of multi-token prediction; both say nothing of the layers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

enum class HybridLayer : std::uint8_t { mamba, attention, mlp, experts };
// Names of their kinds in model files.
template <>
inline constexpr std::array<Spelling<HybridLayer>, 4> spellings<HybridLayer>{{
    {HybridLayer::mamba, "mamba"},
    {HybridLayer::attention, "attention"},
    {HybridLayer::mlp, "mlp"},
    {HybridLayer::experts, "moe"},
}};

inline constexpr std::array<std::pair<char, HybridLayer>, 4> hybrid_letters{{{'M', HybridLayer::mamba},
                                                                             {'*', HybridLayer::attention},
                                                                             {'-', HybridLayer::mlp},
                                                                             {'E', HybridLayer::experts}}};

LayerParts part_of(HybridLayer layer);

// What a text must be that hybrid_layers() reads.
inline constexpr std::string_view hybrid_pattern_rule =
    "must be of the letters M, *, - and E, with | between stages";

// In the order of the model; nothing where a letter is none of these, or there is none.
std::optional<std::vector<HybridLayer>> hybrid_layers(std::string_view pattern);

// The pattern of a model whose layers are each of one part, with its stages apart where it has several, and with the attention and
// the MLP of each depth of multi-token prediction, or the last layer where it has not both; nothing of another model. `layers_by_stage` add up to the model's layers.
std::optional<std::string> hybrid_pattern(const Transformer& model,
                                          std::span<const std::int64_t> layers_by_stage);

}  // namespace headroom

// Layers of one part as a text with a letter for each, as Megatron-LM and Nemotron's config.json write them
// [Megatron-LM, core/models/hybrid/hybrid_layer_allocation.py, --hybrid-layer-pattern, formerly --hybrid-override-pattern].
//
//   M  Mamba     *  attention     -  MLP     E  mixture of experts
//
// A | divides pipeline stages, and what stands behind a / is of multi-token prediction; both say nothing of the layers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model/transformer.hpp"

namespace headroom {

enum class HybridLayer : std::uint8_t { mamba, attention, mlp, experts };

// In the order of the model; nothing where a letter is none of these, or there is none.
std::optional<std::vector<HybridLayer>> hybrid_layers(std::string_view pattern);

// The pattern of a model whose layers are each of one part, with its stages apart where it has several, and with the attention and
// the MLP of each depth of multi-token prediction; nothing of another model. `layers_by_stage` add up to the model's layers.
std::optional<std::string> hybrid_pattern(const Transformer& model,
                                          std::span<const std::int64_t> layers_by_stage);

// The name of a kind of such layers: "mamba", "attention", "mlp", "moe".
std::string_view kind_name(HybridLayer layer);

}  // namespace headroom

#include "headroom/model/hybrid_pattern.hpp"

#include <algorithm>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

// Nothing for a layer of both parts.
std::optional<HybridLayer> hybrid_layer_of(const Architecture& layer) {
  switch (layer.parts) {
    case LayerParts::both: return std::nullopt;
    case LayerParts::mixer: return layer.mamba ? HybridLayer::mamba : HybridLayer::attention;
    case LayerParts::mlp: break;
  }
  return layer.experts ? HybridLayer::experts : HybridLayer::mlp;
}

std::optional<HybridLayer> layer_of(char letter) {
  for (const auto& [each, layer] : hybrid_letters) {
    if (each == letter) return layer;
  }
  return std::nullopt;
}

char letter_of(HybridLayer layer) {
  const auto* const found = std::find_if(hybrid_letters.begin(), hybrid_letters.end(),
                                         [&](const auto& each) { return each.second == layer; });
  EXPECTS(found != hybrid_letters.end());
  return found->first;
}

// As layers_of() has them: attention, and the last MLP or experts; the last layer where it has not both.
std::string letters_of_prediction(std::string_view letters, std::int64_t depths) {
  const char attention = letter_of(HybridLayer::attention);
  const auto last = std::find_if(letters.rbegin(), letters.rend(), [](char letter) {
    return part_of(layer_of(letter).value()) == LayerParts::mlp;
  });
  const bool both = last != letters.rend() && letters.find(attention) != std::string_view::npos;
  const std::string one = both ? std::string{'/', attention, *last} : std::string{'/', letters.back()};
  std::string text;
  for (std::int64_t depth = 0; depth < depths; ++depth) text += one;
  return text;
}

}  // namespace

LayerParts part_of(HybridLayer layer) {
  const bool mixes = layer == HybridLayer::mamba || layer == HybridLayer::attention;
  return mixes ? LayerParts::mixer : LayerParts::mlp;
}

std::optional<std::vector<HybridLayer>> hybrid_layers(std::string_view pattern) {
  std::vector<HybridLayer> layers;
  for (const char letter : pattern.substr(0, pattern.find('/'))) {
    if (letter == '|') continue;
    const std::optional<HybridLayer> layer = layer_of(letter);
    if (!layer) return std::nullopt;
    layers.push_back(*layer);
  }
  if (layers.empty()) return std::nullopt;
  return layers;
}

std::optional<std::string> hybrid_pattern(const Transformer& model,
                                          std::span<const std::int64_t> layers_by_stage) {
  std::string letters;
  for (const LayerRun& run : model.layer_runs) {
    const auto layer = hybrid_layer_of(model.layer_kinds[run.kind].architecture);
    if (!layer) return std::nullopt;
    letters.append(static_cast<std::size_t>(run.count), letter_of(*layer));
  }
  if (letters.empty()) return std::nullopt;
  std::string pattern;
  std::size_t place = 0;
  for (std::size_t stage = 0; stage < layers_by_stage.size(); ++stage) {
    if (stage > 0) pattern += '|';
    const auto layers = static_cast<std::size_t>(layers_by_stage[stage]);
    pattern += letters.substr(place, layers);
    place += layers;
  }
  return pattern + letters_of_prediction(letters, model.mtp_layers);
}

}  // namespace headroom

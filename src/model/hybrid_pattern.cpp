#include "headroom/model/hybrid_pattern.hpp"

#include <algorithm>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

// Returns the part of a layer with one part, and nothing for a layer with both.
std::optional<HybridLayer> hybrid_layer_of(const Architecture& layer) {
  switch (layer.parts) {
    case LayerParts::both: return std::nullopt;
    case LayerParts::mixer: {
      HybridLayer mixer = HybridLayer::attention;
      with_mixer(layer.mixers,
                 [&](const auto& row, const auto&) { mixer = from_name<HybridLayer>(row.name).value(); });
      return mixer;
    }
    case LayerParts::mlp: break;
  }
  return layer.experts ? HybridLayer::experts : HybridLayer::mlp;
}

std::optional<HybridLayer> layer_of(char letter) {
  for (const HybridLayerRow& row : hybrid_layer_rows) {
    if (row.letter == letter && letter != '\0') return row.layer;
  }
  return std::nullopt;
}

// Returns the letter of a part, or '\0' if it has none.
char letter_of(HybridLayer layer) {
  const auto* const found = std::find_if(hybrid_layer_rows.begin(), hybrid_layer_rows.end(),
                                         [&](const HybridLayerRow& row) { return row.layer == layer; });
  EXPECTS(found != hybrid_layer_rows.end());
  return found->letter;
}

// Returns the letters of prediction depths as layers_of() builds them: attention, and the last MLP or
// experts, or the last layer if the model lacks one of them.
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
  const bool feeds = layer == HybridLayer::mlp || layer == HybridLayer::experts;
  return feeds ? LayerParts::mlp : LayerParts::mixer;
}

std::string hybrid_pattern_rule() {
  std::string letters;
  for (const HybridLayerRow& row : hybrid_layer_rows) {
    if (row.letter == '\0') continue;
    const bool last = row.layer == hybrid_layer_rows[hybrid_layer_rows.size() - 1].layer;
    letters += std::string(letters.empty() ? "" : last ? " and " : ", ") + row.letter;
  }
  return "must be of the letters " + letters + ", with | between stages";
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
    if (!layer || letter_of(*layer) == '\0') return std::nullopt;
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

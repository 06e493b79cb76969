#include "headroom/model/hybrid_pattern.hpp"

namespace headroom {
namespace {

// Nothing for a layer of both parts.
std::optional<char> letter_of(const Architecture& layer) {
  switch (layer.parts) {
    case LayerParts::both: return std::nullopt;
    case LayerParts::mixer: return layer.mamba ? 'M' : '*';
    case LayerParts::mlp: break;
  }
  return layer.experts ? 'E' : '-';
}

// As layers_of() has them: attention, and the last MLP or experts.
std::string letters_of_prediction(std::string_view letters, std::int64_t depths) {
  const std::size_t last = letters.find_last_of("-E");
  if (last == std::string_view::npos) return {};
  std::string text;
  for (std::int64_t depth = 0; depth < depths; ++depth) text += std::string("/*") + letters[last];
  return text;
}

}  // namespace

std::optional<std::vector<HybridLayer>> hybrid_layers(std::string_view pattern) {
  std::vector<HybridLayer> layers;
  for (const char letter : pattern.substr(0, pattern.find('/'))) {
    switch (letter) {
      case 'M': layers.push_back(HybridLayer::mamba); break;
      case '*': layers.push_back(HybridLayer::attention); break;
      case '-': layers.push_back(HybridLayer::mlp); break;
      case 'E': layers.push_back(HybridLayer::experts); break;
      case '|': break;
      default: return std::nullopt;
    }
  }
  if (layers.empty()) return std::nullopt;
  return layers;
}

std::optional<std::string> hybrid_pattern(const Transformer& model,
                                          std::span<const std::int64_t> layers_by_stage) {
  std::string letters;
  for (const LayerRun& run : model.layer_runs) {
    const std::optional<char> letter = letter_of(model.layer_kinds[run.kind].architecture);
    if (!letter) return std::nullopt;
    letters.append(static_cast<std::size_t>(run.count), *letter);
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

std::string_view kind_name(HybridLayer layer) {
  switch (layer) {
    case HybridLayer::mamba: return "mamba";
    case HybridLayer::attention: return "attention";
    case HybridLayer::mlp: return "mlp";
    case HybridLayer::experts: break;
  }
  return "moe";
}

}  // namespace headroom

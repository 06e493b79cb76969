#include "headroom/model/hybrid_pattern.hpp"

namespace headroom {

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

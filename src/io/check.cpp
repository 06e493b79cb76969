#include "headroom/io/check.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "file_formats.hpp"
#include "text.hpp"

namespace headroom {

std::variant<Transformer, System, Software> check_file(const std::string& path) {
  Document document = read_document(read_file(path), path);
  const auto has_any = [&](const auto& keys) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](const char* key) { return document.root.contains(key); });
  };
  if (has_any(std::array{"hidden", "layers", "heads", "feedforward"})) return model_of(std::move(document));
  if (has_any(std::array{"device", "memory", "devices_per_node", "reserves", "base"})) {
    return system_of(std::move(document));
  }
  if (has_any(std::array{"gradient_accumulation", "norm_backward", "product_rate"})) {
    return software_of(std::move(document));
  }
  throw InputError(path,
                   "is no model (hidden, layers, ...), system (device, memory, ...) or software "
                   "(gradient_accumulation, product_rate, ...)");
}

}  // namespace headroom

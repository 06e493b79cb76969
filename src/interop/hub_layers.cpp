#include "interop/hub_layers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/model/transformer.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

std::string kind_of(const HubLayer& layer) {
  return std::string(layer.experts ? "moe" : "dense") + (layer.window ? "_sliding" : "") +
         (layer.chunk ? "_chunked" : "") + (layer.positions ? "" : "_nope") +
         (layer.mixer.empty() ? "" : "_" + std::string(layer.mixer));
}

// The fewest layers that the others repeat; none where that is more than a pattern is read for.
std::size_t period_of(const std::vector<HubLayer>& layers) {
  constexpr std::size_t longest = 12;
  for (std::size_t period = 1; period <= longest && 2 * period <= layers.size(); ++period) {
    const auto later = layers.begin() + static_cast<std::ptrdiff_t>(period);
    if (std::equal(later, layers.end(), layers.begin())) return period;
  }
  return 0;
}

Json pattern_of(const std::vector<HubLayer>& layers, std::size_t period) {
  Json pattern = Json::array();
  for (std::size_t i = 0; i < period; ++i) pattern.push_back(kind_of(layers[i]));
  return Json::array({{{"pattern", std::move(pattern)}, {"count", layers.size()}}});
}

Json runs_of(const std::vector<HubLayer>& layers) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0 && layers[i] == layers[i - 1]) {
      runs.back()["count"] = runs.back()["count"].get<std::int64_t>() + 1;
    } else {
      runs.push_back({{"kind", kind_of(layers[i])}, {"count", 1}});
    }
  }
  return runs;
}

}  // namespace

Json layer_members(const std::vector<HubLayer>& layers,
                   const std::function<Json(const HubLayer&)>& members_of) {
  const std::size_t period = period_of(layers);
  const bool alike = std::equal(layers.begin() + 1, layers.end(), layers.begin());
  if (alike) {
    Json members = members_of(layers.front());
    members["layers"] = layers.size();
    return members;
  }
  Json members{{"layers", period > 0 ? pattern_of(layers, period) : runs_of(layers)}};
  for (const HubLayer& layer : layers) members["layer_kinds"][kind_of(layer)] = members_of(layer);
  return members;
}

std::size_t layer_count_of(ConfigReader& config, const std::string& key, std::int64_t by_default) {
  const std::optional<std::int64_t> stated = config.integer(key);
  if (!stated && config.has(key)) return 0;  // it is no integer, which is reported
  const std::int64_t count = stated ? *stated : config.integer(key, by_default);
  if (count < 1 || count > most_layers) {
    config.report(key, fmt::format("must be an integer from 1 to {} (found {})", most_layers, count));
    return 0;
  }
  return static_cast<std::size_t>(count);
}

std::vector<std::string> layer_types_of(ConfigReader& config, const std::string& key, std::size_t layers,
                                        const std::vector<std::string_view>& known) {
  std::vector<std::string> types = config.list<std::string>(key);
  if (layers > 0 && !types.empty() && types.size() != layers) {
    config.report(key, fmt::format("must be of the model's {} layers (found {})", layers, types.size()));
  }
  for (const std::string& type : types) {
    if (contains(known, type)) continue;
    config.report(key, fmt::format("must be of {}: '{}' is not modelled", joined(known), printable(type)));
    break;
  }
  return types;
}

}  // namespace headroom

// Mixers of a config.json, by the rows of model/parts/mixers.hpp: their sizes, and which layers have them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model/parts/mixers.hpp"
#include "interop/config_reader.hpp"
#include "interop/hub_layers.hpp"
#include "interop/hub_traits.hpp"
#include "io/document.hpp"

namespace headroom {

// Returns the key of a size. Types whose layers are the mixer alone have plain names, which come last; the
// others may have them for attention.
template <std::size_t N>
std::string key_of_size(const std::array<std::string_view, N>& names, bool alone,
                        const ConfigReader& config) {
  for (std::size_t i = 0; i < N; ++i) {
    std::string key(names[alone ? N - 1 - i : i]);
    if (!key.empty() && (alone || i < 2) && config.has(key)) return key;
  }
  return std::string(names[0]);
}

// Returns the sizes of a mixer, as the members of its object in a model file. `where` is the entry of its row
// for the model type, or null.
template <class Mixer>
Json sizes_of(const MixerRow<Mixer>& row, const HubLayers* where, const HubWidths& widths,
              ConfigReader& config) {
  for (const HubDemand& demand : row.hub_demands) {
    const std::string key(demand.key);
    if (config.has(key) && config.boolean(key, demand.value) != demand.value)
      config.report(key, std::string(demand.rule));
  }
  Json sizes = Json::object();
  Mixer mixer;
  for (std::size_t i = 0; i < row.sizes.size(); ++i) {
    const PartSize<Mixer>& size = row.sizes[i];
    const std::string key = key_of_size(size.in_hub.keys, where != nullptr && where->alone, config);
    const std::int64_t of_type = where != nullptr ? where->by_default[i] : 0;
    const bool derives = where != nullptr && of_type == 0 && size.in_hub.derived != nullptr;
    std::int64_t value = of_type != 0 ? of_type : size.in_hub.by_default;
    if (derives && (key.empty() || !config.has(key) || config.says(key, "auto"))) {
      value = size.in_hub.derived(widths, mixer);
    } else {
      value = config.integer(key, value);
    }
    mixer.*size.member = value;
    sizes[std::string(size.word)] = value;
  }
  return sizes;
}

// Returns the entry of the model type, or null.
template <class Mixer>
const HubLayers* hub_layers_of(const MixerRow<Mixer>& row, std::string_view type) {
  for (const HubLayers& where : row.hub_layers) {
    for (const std::string_view name : where.types) {
      if (!name.empty() && name == type) return &where;
    }
  }
  return nullptr;
}

// Returns which layers have the mixer. `inner` reads the object of `where`; `layer_types` are the model's, or
// none.
std::vector<bool> mixer_places(const HubLayers& where, ConfigReader& config, ConfigReader& inner,
                               const std::vector<std::string>& layer_types, std::size_t layers);

}  // namespace headroom

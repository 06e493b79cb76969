// Reads the sizes of mixers from a config.json, by the rows of model/parts/mixers.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "headroom/model/parts/mixers.hpp"
#include "interop/config_reader.hpp"
#include "io/document.hpp"

namespace headroom {

// Returns the number under the first of the names that the file has. Names changed with versions of a model
// type.
inline std::int64_t integer_of(ConfigReader& config, const std::array<std::string_view, 2>& names,
                               std::int64_t by_default) {
  const bool by_second = !config.has(std::string(names[0])) && config.has(std::string(names[1]));
  return config.integer(std::string(names[by_second ? 1 : 0]), by_default);
}

template <class Mixer>
Json sizes_of(const MixerRow<Mixer>& row, ConfigReader& config) {
  for (const HubDemand& demand : row.hub_demands) {
    const std::string key(demand.key);
    if (config.boolean(key, demand.value) != demand.value) config.report(key, std::string(demand.rule));
  }
  Json sizes = Json::object();
  for (const PartSize<Mixer>& size : row.sizes)
    sizes[std::string(size.word)] = integer_of(config, size.in_hub.keys, size.in_hub.by_default);
  return sizes;
}

}  // namespace headroom

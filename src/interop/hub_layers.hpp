// Layers that a config.json describes one by one, as the members "layers" and "layer_kinds" of a model file
// of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/config_reader.hpp"
#include "io/document.hpp"

namespace headroom {

// What one layer has of its own.
struct HubLayer {
  bool experts = false;
  bool window = false;
  bool chunk = false;
  bool positions = true;
  std::string_view mixer{};  // in place of attention, or empty
  bool alone = false;        // it has no MLP
  friend bool operator==(const HubLayer&, const HubLayer&) = default;
};

// Runs of kinds, or the shortest pattern that the layers repeat; of layers that are all alike, members of the
// model itself. There is a layer, and `members_of` says what one has of its own in a model file.
Json layer_members(const std::vector<HubLayer>& layers,
                   const std::function<Json(const HubLayer&)>& members_of);

// How many layers there are. What no model can have is reported; then it is 0, and lists of them are held to
// no number.
std::size_t layer_count_of(ConfigReader& config, const std::string& key, std::int64_t by_default);

// Returns the list `key`, a known type for each layer, or none if the file has no such list.
std::vector<std::string> layer_types_of(ConfigReader& config, const std::string& key, std::size_t layers,
                                        const std::vector<std::string_view>& known);

}  // namespace headroom

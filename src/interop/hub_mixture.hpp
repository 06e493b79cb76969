// Mixtures of experts of a config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/config_reader.hpp"
#include "interop/hub_layers.hpp"
#include "interop/hub_types.hpp"

namespace headroom {

// The member "experts" of a model file, empty where the type has none, and which of the layers have them.
// `feedforward` is the width of the MLP, which some types give their experts.
Json mixture_of(ConfigReader& config, const HubType& type, std::int64_t feedforward,
                std::vector<HubLayer>& layers);

}  // namespace headroom

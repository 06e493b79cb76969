// Mixtures of experts of a config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/config_reader.hpp"
#include "interop/hub_layers.hpp"
#include "interop/hub_traits.hpp"

namespace headroom {

// The member "experts" of a model file, empty where the type has none, and which of the layers have them.
// `model` has the other sizes.
Json mixture_of(ConfigReader& config, const HubType& type, Json& model, std::vector<HubLayer>& layers);

}  // namespace headroom

// A config.json of type nemotron_h: layers of a mixer, an MLP or experts alone [nvidia/Nemotron-H-8B-Base-8K,
// configuration_nemotron_h.py].
#pragma once

#include "interop/config_reader.hpp"
#include "interop/hub_types.hpp"

namespace headroom {

// As model_file_of() of the other types (hub_model.hpp).
Json hybrid_file_of(ConfigReader& config, const HubType& type);

}  // namespace headroom

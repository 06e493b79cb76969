// A config.json of a known type, in the members of a model file of ours.
#pragma once

#include "interop/config_reader.hpp"
#include "interop/hub_types.hpp"

namespace headroom {

// Tells the reader what is assumed, and notes what is not modelled.
Json model_file_of(ConfigReader& config, const HubType& type);

}  // namespace headroom

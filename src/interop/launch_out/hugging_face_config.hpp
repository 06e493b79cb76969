// A model as the config.json of Hugging Face transformers. For hugging_face_launch.cpp.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "headroom/model/transformer.hpp"

namespace headroom {

// Returns nothing if no class of transformers that is known here has these layers. `positions`: the longest sequence.
std::optional<nlohmann::ordered_json> hugging_face_config(const Transformer& model, std::int64_t positions);

}  // namespace headroom

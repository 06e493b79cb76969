// What no config.json says, and every model file does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "interop/config_reader.hpp"
#include "io/model_fields.hpp"

namespace headroom {

// Most pre-training is at this length, or at the longest that learned positions allow.
inline constexpr std::int64_t common_length = 4096;

// Of training sequences. `longest` is what the model is served with at most.
inline void assume_length(ConfigReader& config, std::optional<std::int64_t> longest, Json& model) {
  const std::int64_t length = std::clamp<std::int64_t>(longest.value_or(common_length), 1, common_length);
  model["sequence"] = length;
  config.assume("sequence",
                fmt::format("sequence is {}: config.json has no length of training sequences, and "
                            "max_position_embeddings is the longest that the model is served with",
                            length));
}

inline void assume_flash(ConfigReader& config, Json& model) {
  model["kernels"] = {{"attention", "flash"}};
  config.assume("kernels.attention",
                "kernels.attention is flash: what a training stack keeps is no part of config.json");
}

// How many depths of multi-token prediction; a config.json that names none has none.
inline void add_mtp_layers(ConfigReader& config, Json& model,
                           const std::string& key = "num_nextn_predict_layers") {
  if (const auto depths = config.integer(key, 0, Range{0, most_mtp_layers}); depths > 0) {
    model["mtp_layers"] = depths;
    config.stands_for("mtp_layers", key);
  }
}

}  // namespace headroom

// What no config.json says, and every model file does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "interop/config_reader.hpp"

namespace headroom {

// Most pre-training is at this length, or at the longest that learned positions allow.
inline constexpr std::int64_t common_length = 4096;

// Of training sequences. `longest` is what the model is served with at most.
inline void assume_length(ConfigReader& config, std::optional<std::int64_t> longest, Json& model) {
  const std::int64_t length = std::clamp<std::int64_t>(longest.value_or(common_length), 1, common_length);
  model["sequence"] = length;
  config.tell(fmt::format(
      "sequence is {}: config.json has no length of training sequences, and max_position_embeddings is the "
      "longest that the model is served with",
      length));
}

inline void assume_flash(ConfigReader& config, Json& model) {
  model["kernels"] = {{"attention", "flash"}};
  config.tell("kernels.attention is flash: what a training stack keeps is no part of config.json");
}

}  // namespace headroom

// config.json of models on the Hugging Face hub, by name: what a script or a question names without a file at hand.
#pragma once

#include <span>
#include <string_view>

namespace headroom {

struct PublishedConfig {
  std::string_view name;    // in lower case, without its owner: "falcon-7b"
  std::string_view config;  // the keys of config.json that a reader needs, as JSON
};

std::span<const PublishedConfig> published_configs();

// Returns the configuration of a name such as "tiiuae/falcon-7b-instruct": the row with the longest name that it starts
// with, up to the end of a word. Null: none.
const PublishedConfig* published_config(std::string_view name);

}  // namespace headroom

#include "interop/hub_hybrid.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/core/reading.hpp"
#include "headroom/model/hybrid_pattern.hpp"
#include "interop/hub_assumptions.hpp"
#include "interop/hub_mixers.hpp"

namespace headroom {
namespace {

constexpr std::string_view pattern_of_type = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-";

// Of a list of words, one for each layer, or of a pattern of letters.
std::vector<HybridLayer> layers_described(ConfigReader& config) {
  std::vector<HybridLayer> layers;
  const char* const words = "layers_block_type";
  for (const std::string& word : config.list<std::string>(words)) {
    HybridLayer layer{};
    if (std::string rule = read_name(word, layer); !rule.empty()) {
      config.report(words, std::move(rule));
      return {};
    }
    layers.push_back(layer);
  }
  if (!layers.empty()) return layers;
  const char* const letters = "hybrid_override_pattern";
  const auto described = hybrid_layers(config.text(letters, pattern_of_type));
  if (!described) config.report(letters, hybrid_pattern_rule());
  return described.value_or(std::vector<HybridLayer>());
}

Json experts_of(ConfigReader& config) {
  Json experts{{"count", config.integer("n_routed_experts", 8)},
               {"per_token", config.integer("num_experts_per_tok", 2)},
               {"feedforward", config.integer("moe_intermediate_size", 7688)},
               {"scores", "sigmoid"},
               {"router_bias", true}};
  if (config.integer("n_shared_experts", 1, Range{0, head_counts.most}) > 0) {
    experts["shared_feedforward"] = config.integer("moe_shared_expert_intermediate_size", 7688);
  }
  if (const std::int64_t groups = config.integer("n_group", 1, head_counts); groups != 1) {
    experts["groups"] = groups;
    experts["groups_per_token"] = config.integer("topk_group", 1, head_counts);
  }
  if (const auto latent = config.integer("moe_latent_size")) experts["latent"] = *latent;
  return experts;
}

Json kind_of(HybridLayer layer, ConfigReader& config) {
  Json kind{{"parts", name_of(part_of(layer))}};
  for_each_mixer([&](const auto& row, auto) {
    if (row.name == name_of(layer)) kind[std::string(row.name)] = sizes_of(row, nullptr, {}, config);
  });
  if (layer == HybridLayer::experts) kind["experts"] = experts_of(config);
  return kind;
}

void lay_out(const std::vector<HybridLayer>& layers, ConfigReader& config, Json& model) {
  Json& runs = model["layers"] = Json::array();
  Json& kinds = model["layer_kinds"] = Json::object();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name(name_of(layers[i]));
    if (i > 0 && layers[i] == layers[i - 1]) {
      runs.back()["count"] = runs.back()["count"].get<std::int64_t>() + 1;
    } else {
      runs.push_back({{"kind", name}, {"count", 1}});
    }
    if (!kinds.contains(name)) kinds[name] = kind_of(layers[i], config);
  }
}

}  // namespace

Json hybrid_file_of(ConfigReader& config, const HubType& type) {
  const HubSizes& sizes = type.sizes;
  Json model = Json::object();
  model["hidden"] = config.integer("hidden_size", sizes.hidden);
  model["feedforward"] = config.integer("intermediate_size", sizes.feedforward);
  model["heads"] = config.integer("num_attention_heads", sizes.heads);
  model["key_value_heads"] = config.integer("num_key_value_heads", sizes.key_value_heads);
  model["head_size"] = config.integer(
      config.key_of(std::array<std::string_view, 2>{"head_dim", "attention_head_dim"}), sizes.head_size);
  model["vocabulary"] = config.integer("vocab_size", sizes.vocabulary);
  model["vocabulary_multiple"] = 1;
  model["tied_embeddings"] = config.boolean("tie_word_embeddings", type.traits.tied);
  const std::string activation = config.text("mlp_hidden_act", type.traits.activation);
  if (activation != "relu2") {
    config.report("mlp_hidden_act", fmt::format("must be relu2 in a model of type {}", type.name));
  }
  model["activation"] = "squared_relu";
  model["normalization"] = "rms_norm";
  model["positions"] = "none";
  model["linear_bias"] = config.boolean("mlp_bias", false);
  model["qkv_bias"] = config.boolean("attention_bias", false);
  model["hidden_dropout"] = config.above_zero("hidden_dropout", false);
  model["attention_dropout"] = config.above_zero("attention_dropout", false);
  const std::vector<HybridLayer> layers = layers_described(config);
  lay_out(layers, config, model);
  const auto stated = config.integer("num_hidden_layers");
  if (!layers.empty() && stated && *stated != static_cast<std::int64_t>(layers.size())) {
    config.report("num_hidden_layers",
                  fmt::format("must be the {} layers that are described", layers.size()));
  }
  add_mtp_layers(config, model);
  assume_length(config, config.integer("max_position_embeddings"), model);
  assume_flash(config, model);
  return model;
}

}  // namespace headroom

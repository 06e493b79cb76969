#include "interop/hub_model.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headroom/model/transformer.hpp"
#include "interop/hub_assumptions.hpp"
#include "interop/hub_hybrid.hpp"
#include "interop/hub_layers.hpp"
#include "interop/hub_mixers.hpp"
#include "interop/hub_mixture.hpp"

namespace headroom {
namespace {

constexpr bool is_any(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Translation {
 public:
  Translation(ConfigReader& config, const HubType& type) : config_(config), type_(type) {}

  Json translate() {
    sizes();
    choices();
    attention();
    windows();
    mixers();
    experts_ = mixture_of(config_, type_, feedforward_, layers_);
    if (of(HubFamily::deepseek) || of(HubFamily::glm)) add_mtp_layers(config_, model_);
    if (config_.integer("mtp_num_hidden_layers").value_or(0) != 0)
      config_.assume("mtp_layers", "multi-token prediction is left out; --set mtp_layers=N counts it");
    positions();
    lay_out();
    lengths();
    assume_flash(config_, model_);
    return std::move(model_);
  }

 private:
  [[nodiscard]] bool is(std::string_view name) const { return type_.name == name; }
  [[nodiscard]] bool of(HubFamily family) const { return type_.family == family; }
  [[nodiscard]] bool gated() const {
    return !of(HubFamily::gpt2) && !of(HubFamily::gpt_neox) && !of(HubFamily::opt) &&
           !of(HubFamily::nemotron);
  }
  [[nodiscard]] bool learned_positions() const { return of(HubFamily::gpt2) || of(HubFamily::opt); }

  std::int64_t size(const char* ours, const std::string& key, std::int64_t by_default, Range sizes) {
    config_.stands_for(ours, key);
    const std::int64_t value = config_.integer(key, by_default, sizes);
    model_[ours] = value;
    return value;
  }

  void sizes() {
    const bool gpt2 = of(HubFamily::gpt2);
    hidden_ = size("hidden", gpt2 ? "n_embd" : "hidden_size", type_.hidden, widths);
    const std::int64_t heads =
        size("heads", gpt2 ? "n_head" : "num_attention_heads", type_.heads, head_counts);
    layers_.resize(layer_count_of(config_, gpt2 ? "n_layer" : "num_hidden_layers", type_.layers));
    const std::string width = of(HubFamily::opt)      ? "ffn_dim"
                              : of(HubFamily::llama4) ? "intermediate_size_mlp"
                                                      : "intermediate_size";
    feedforward_ = gpt2 ? size("feedforward", "n_inner", 4 * hidden_, widths)
                        : size("feedforward", width, type_.feedforward, widths);
    if (!of(HubFamily::deepseek)) {
      if (type_.key_value_heads > 0 || config_.has("num_key_value_heads")) {
        size("key_value_heads", "num_key_value_heads",
             type_.key_value_heads > 0 ? type_.key_value_heads : heads, head_counts);
      }
      if (type_.head_size > 0 || config_.has("head_dim")) {
        size("head_size", "head_dim", type_.head_size, widths);
      }
    }
    size("vocabulary", "vocab_size", type_.vocabulary, token_counts);
    model_["vocabulary_multiple"] = 1;
    model_["tied_embeddings"] = config_.boolean("tie_word_embeddings", type_.tied);
  }

  void choices() {
    const std::string key = of(HubFamily::gpt2)                ? "activation_function"
                            : of(HubFamily::opt)               ? "activation_function"
                            : config_.has("hidden_activation") ? "hidden_activation"
                                                               : "hidden_act";
    const std::string given = config_.text(key, type_.activation);
    const bool gelu = given.starts_with("gelu");
    if (gated() && is_any(given, {"silu", "swish"})) {
      model_["activation"] = "swiglu";
    } else if (gelu) {
      model_["activation"] = gated() ? "geglu" : "gelu";
    } else if (!gated() && given == "relu") {
      model_["activation"] = "relu";
    } else if (!gated() && given == "relu2") {
      model_["activation"] = "squared_relu";
    } else {
      config_.report(key, fmt::format("'{}' is not modelled in a model of type {}", given, type_.name));
    }
    const bool layer_norm = !gated();
    model_["normalization"] = layer_norm ? "layer_norm" : "rms_norm";
    if (is("gemma2") || is("gemma3") || is("gemma3_text")) model_["norm_position"] = "both";
    if (is("olmo2")) model_["norm_position"] = "after";
    if (of(HubFamily::gpt_neox) && config_.boolean("use_parallel_residual", true))
      model_["residual"] = "parallel";
    biases();
    const bool gpt2 = of(HubFamily::gpt2);
    const bool dropped = gpt2                      ? config_.above_zero("resid_pdrop", true)
                         : of(HubFamily::opt)      ? config_.above_zero("dropout", true)
                         : of(HubFamily::gpt_neox) ? config_.above_zero("hidden_dropout", false)
                                                   : config_.above_zero("resid_pdrop", false);
    model_["hidden_dropout"] = dropped;
    model_["attention_dropout"] = config_.above_zero(gpt2 ? "attn_pdrop" : "attention_dropout", gpt2);
    if (of(HubFamily::opt)) {
      if (config_.integer("word_embed_proj_dim").value_or(hidden_) != hidden_) {
        config_.report("word_embed_proj_dim",
                       "must be hidden_size: projections of embeddings are not modelled");
      }
      if (!config_.boolean("do_layer_norm_before", true)) {
        config_.report("do_layer_norm_before",
                       "must be true: normalization of the stream itself is not modelled");
      }
    }
  }

  // Of attention, which may or may not cover its projection, and of the MLP.
  void biases() {
    bool of_qkv = false;
    bool of_linears = false;
    if (of(HubFamily::gpt2)) {
      of_qkv = of_linears = true;
    } else if (of(HubFamily::opt)) {
      of_qkv = of_linears = config_.boolean("enable_bias", true);
    } else if (of(HubFamily::gpt_neox) || of(HubFamily::gpt_oss)) {
      of_qkv = config_.boolean("attention_bias", true);
      of_linears = true;
    } else if (is("qwen2") || is("qwen2_moe")) {
      of_qkv = is("qwen2") || config_.boolean("qkv_bias", true);
    } else {
      of_qkv = config_.boolean("attention_bias", false);
      of_linears = config_.boolean("mlp_bias", false);
      if (of_qkv && !of_linears && !of(HubFamily::glm)) {
        config_.assume("qkv_bias",
                       "the bias of the attention projection, hidden_size numbers a layer, is left out");
      }
    }
    model_["linear_bias"] = of_linears;
    model_["qkv_bias"] = of_qkv;
  }

  void attention() {
    const bool gated = is("qwen3_next") || is("qwen3_5_text") || is("qwen3_5_moe_text");
    if (gated) model_["attention_gate"] = config_.boolean("attn_output_gate", true);
    if (is("qwen3") || is("qwen3_moe") || gated || is("gemma3") || is("gemma3_text") ||
        (of(HubFamily::glm) && config_.boolean("use_qk_norm", false))) {
      model_["qk_norm"] = "per_head";
    }
    if (is("olmo2")) model_["qk_norm"] = "full";
    l2_norms_ = of(HubFamily::llama4) && config_.boolean("use_qk_norm", true);
    if (of(HubFamily::gemma)) {
      const bool second = is("gemma2");
      model_["attention_softcap"] = capped("attn_logit_softcapping", second);
      model_["final_softcap"] = capped("final_logit_softcapping", second);
    }
    if (of(HubFamily::gpt_oss))
      model_.update({{"attention_sinks", true}, {"clamped_activation", true}, {"scaled_rotary", true}});
    if (!of(HubFamily::deepseek)) return;
    const bool no_rank = !config_.has("q_lora_rank") && (config_.names("q_lora_rank") || is("kimi_linear"));
    Json& latent = model_["latent_attention"];
    const auto latent_size = [&](const char* ours, const std::string& key, std::int64_t by_default) {
      config_.stands_for(std::string("latent_attention/") + ours, key);
      latent[ours] = config_.integer(key, by_default, widths);
    };
    if (no_rank) {
      latent["q_rank"] = 0;
    } else {
      latent_size("q_rank", "q_lora_rank", 1536);
    }
    latent_size("kv_rank", "kv_lora_rank", 512);
    latent_size("nope_head_size", "qk_nope_head_dim", 128);
    latent_size("rope_head_size", "qk_rope_head_dim", 64);
    latent_size("value_head_size", "v_head_dim", 128);
  }

  [[nodiscard]] bool capped(const std::string& key, bool by_default) {
    return config_.names(key) && !config_.has(key) ? false : config_.above_zero(key, by_default);
  }

  // Tokens of a window, null where the file says that there is none.
  [[nodiscard]] std::int64_t window(std::int64_t by_default) {
    const std::string key = "sliding_window";
    config_.stands_for("window", key);
    if (config_.names(key) && !config_.has(key)) return 0;
    const Range sizes{0, token_counts.most};
    return by_default > 0 ? config_.integer(key, by_default, sizes) : config_.integer(key, sizes).value_or(0);
  }

  void windows() {
    std::vector<std::string_view> known{"full_attention", "sliding_attention"};
    if (of(HubFamily::llama4)) known.emplace_back("chunked_attention");
    with_hub_mixer([&](const auto& row) {
      if (!row.hub_layers.word.empty()) known.push_back(row.hub_layers.word);
    });
    layer_types_ = layer_types_of(config_, layers_.size(), known);
    const bool qwen = is("qwen2") || is("qwen3") || of(HubFamily::qwen_moe);
    const bool windowed_gemma = of(HubFamily::gemma) && !is("gemma");
    if (is("mistral") || windowed_gemma || (qwen && config_.boolean("use_sliding_window", false))) {
      window_ = window(4096);
    } else if (is("phi3") || of(HubFamily::mixtral)) {
      window_ = window(0);
    } else if (of(HubFamily::gpt_oss)) {
      window_ = window(128);
    }
    if (window_ == 0) return;
    const bool gemma3 = is("gemma3") || is("gemma3_text");
    const bool listed = !layer_types_.empty();
    const std::int64_t every = listed   ? 0
                               : gemma3 ? config_.integer("sliding_window_pattern", 6, layer_counts)
                               : is("gemma2") || of(HubFamily::gpt_oss) ? 2
                                                                        : 0;  // each of so many is full
    const std::int64_t first =
        qwen && !listed ? config_.integer("max_window_layers", 28, Range{0, most_layers}) : 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      layers_[i].window = i < layer_types_.size() ? layer_types_[i] == "sliding_attention"
                          : every > 0             ? (number + 1) % every != 0
                                                  : number >= first;
    }
  }

  // Calls `visit` with the row of the mixer of this model type, if it has one.
  template <class Visit>
  void with_hub_mixer(Visit visit) const {
    for_each_mixer([&](const auto& row, auto) {
      for (const std::string_view type : row.hub_layers.types) {
        if (is(type)) visit(row);
      }
    });
  }

  // Returns which layers have the mixer, by lists of numbers from 1.
  std::vector<bool> places_of(const HubLayers& where, ConfigReader& inner) {
    const auto layers = static_cast<std::int64_t>(layers_.size());
    const auto read = [&](std::string_view name) {
      const std::string key(name);
      std::vector<bool> has(layers_.size());
      if (!inner.has(key)) inner.report(key, "is missing, and has no default in this model type");
      for (const std::int64_t number : inner.template list<std::int64_t>(key)) {
        if (layers == 0) break;
        if (number < 1 || number > layers) {
          inner.report(key, fmt::format("must be of the layers 1 to {} (found {})", layers, number));
        } else if (has[static_cast<std::size_t>(number - 1)]) {
          inner.report(key, fmt::format("names layer {} twice", number));
        } else {
          has[static_cast<std::size_t>(number - 1)] = true;
        }
      }
      return has;
    };
    std::vector<bool> mixing = read(where.places);
    const char* const rest = "full_attn_layers";  // layers with attention
    std::vector<bool> others = read(rest);
    others.flip();
    if (mixing != others)
      inner.report(rest, fmt::format("must be the layers that {} leaves out", where.places));
    return mixing;
  }

  void mixers() {
    with_hub_mixer([&](const auto& row) {
      const HubLayers& where = row.hub_layers;
      ConfigReader inner = where.object.empty() ? config_ : config_.inside(std::string(where.object));
      mixer_ = sizes_of(row, inner);
      const std::vector<bool> placed = where.places.empty() ? std::vector<bool>() : places_of(where, inner);
      const bool listed = !layer_types_.empty() || !where.places.empty();
      const std::int64_t every = listed ? 0 : config_.integer(std::string(where.interval), 4, layer_counts);
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        const auto number = static_cast<std::int64_t>(i) + 1;
        const bool mixes = !where.places.empty() ? placed[i]
                           : listed              ? i < layer_types_.size() && layer_types_[i] == where.word
                                                 : number % every != 0;
        if (mixes) layers_[i].mixer = row.name;
      }
    });
  }

  void positions() {
    model_["positions"] = learned_positions() ? "learned" : "rotary";
    if (is("kimi_linear") && config_.boolean("mla_use_nope", false))
      config_.assume("positions",
                     "latent attention without positions is counted as if it rotated a part of k");
    if (!of(HubFamily::llama4)) return;
    const auto listed = config_.list<std::int64_t>("no_rope_layers");  // 1: it has them
    const Range intervals{0, most_layers};
    const std::int64_t every = listed.empty() ? config_.integer("no_rope_layer_interval", 4, intervals) : 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      layers_[i].positions = i < listed.size() ? listed[i] != 0 : every < 1 || (number + 1) % every != 0;
      layers_[i].chunk =
          i < layer_types_.size() ? layer_types_[i] == "chunked_attention" : layers_[i].positions;
    }
    const std::string chunk = "attention_chunk_size";
    config_.stands_for("attention_chunk", chunk);
    if (!config_.names(chunk) || config_.has(chunk)) {  // null is no chunks
      attention_chunk_ = config_.integer(chunk, 8192, token_counts);
    }
  }

  [[nodiscard]] Json members_of(const HubLayer& layer) const {
    Json members = Json::object();
    if (layer.experts) members["experts"] = experts_;
    if (layer.window) members["window"] = window_;
    if (!layer.mixer.empty()) members[std::string(layer.mixer)] = mixer_;
    if (layer.chunk && attention_chunk_ > 0) members["attention_chunk"] = attention_chunk_;
    if (!layer.positions) members["positions"] = "none";
    if (layer.positions && l2_norms_) members["qk_norm"] = "l2";
    return members;
  }

  void lay_out() {
    if (layers_.empty()) return;  // their number is refused
    model_.update(layer_members(layers_, [&](const HubLayer& layer) { return members_of(layer); }));
  }

  void lengths() {
    const std::string key = of(HubFamily::gpt2) ? "n_positions" : "max_position_embeddings";
    if (learned_positions()) {
      constexpr std::int64_t opt_offset =
          2;  // rows before the first position [OPTLearnedPositionalEmbedding]
      const std::int64_t rows = config_.integer(key, of(HubFamily::gpt2) ? 1024 : 2048, token_counts);
      model_["sequence"] = rows;
      model_["max_positions"] = rows + (of(HubFamily::opt) ? opt_offset : 0);
      config_.assume("sequence", fmt::format("sequence is {}, as many as there are learned positions", rows));
      return;
    }
    constexpr std::int64_t of_neox = 2048;
    assume_length(config_,
                  of(HubFamily::gpt_neox) ? config_.integer(key, of_neox, token_counts)
                                          : config_.integer(key, token_counts),
                  model_);
  }

  ConfigReader& config_;
  const HubType& type_;
  Json model_ = Json::object();
  Json experts_ = Json::object();
  Json mixer_ = Json::object();
  std::vector<HubLayer> layers_;
  std::int64_t hidden_ = 0;
  std::int64_t feedforward_ = 0;
  std::vector<std::string> layer_types_;  // as the file lists them
  std::int64_t window_ = 0;
  std::int64_t attention_chunk_ = 0;
  bool l2_norms_ = false;
};

}  // namespace

Json model_file_of(ConfigReader& config, const HubType& type) {
  if (type.family == HubFamily::nemotron_h) return hybrid_file_of(config, type);
  return Translation(config, type).translate();
}

}  // namespace headroom

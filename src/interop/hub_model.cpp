#include "interop/hub_model.hpp"

#include <algorithm>
#include <array>
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
  Translation(ConfigReader& config, const HubType& type)
      : config_(config), type_(type), traits_(type.traits), keys_(*type.traits.keys) {}

  Json translate() {
    sizes();
    choices();
    attention();
    layer_types();
    windows();
    mixers();
    experts_ = mixture_of(config_, type_, model_, layers_);
    if (!traits_.predictors.empty()) add_mtp_layers(config_, model_, std::string(traits_.predictors));
    for (const char* const key : {"mtp_num_hidden_layers", "num_mtp_modules"}) {
      if (config_.integer(key).value_or(0) != 0)
        config_.assume("mtp_layers", "multi-token prediction is left out; --set mtp_layers=N counts it");
    }
    positions();
    lay_out();
    lengths();
    assume_flash(config_, model_);
    if (!traits_.left_out.empty()) config_.assume("", std::string(traits_.left_out));
    return std::move(model_);
  }

 private:
  [[nodiscard]] bool of(HubFamily family) const { return traits_.family == family; }
  [[nodiscard]] bool flag(const HubFlag& flag) {
    return flag.key.empty() ? flag.by_default : config_.boolean(std::string(flag.key), flag.by_default);
  }

  std::int64_t size(const char* ours, const HubNames& names, std::int64_t by_default, Range sizes) {
    const std::string key = config_.key_of(names);
    config_.stands_for(ours, key);
    const std::int64_t value = config_.of_each_layer(key, by_default, sizes);
    model_[ours] = value;
    return value;
  }

  void sizes() {
    const HubSizes& own = type_.sizes;
    hidden_ = size("hidden", keys_.hidden, own.hidden, widths);
    heads_ = size("heads", keys_.heads, own.heads, head_counts);
    layers_.resize(layer_count_of(config_, config_.key_of(keys_.layers), own.layers));
    feedforward();
    if (!of(HubFamily::deepseek)) {
      key_value_heads();
      const std::string key = config_.key_of(keys_.head_size);
      if (own.head_size > 0 || config_.has(key)) {
        size("head_size", keys_.head_size, own.head_size, widths);
      } else if (hidden_ % heads_ != 0) {
        config_.report(config_.key_of(keys_.heads),
                       fmt::format("must divide {} where there is no head_dim ({} % {} = {})",
                                   keys_.hidden[0], hidden_, heads_, hidden_ % heads_));
      }
    }
    size("vocabulary", keys_.vocabulary, own.vocabulary, token_counts);
    model_["vocabulary_multiple"] = 1;
    model_["tied_embeddings"] = config_.boolean(config_.key_of(keys_.tied), traits_.tied);
  }

  void feedforward() {
    const std::int64_t four_times = 4 * hidden_;
    if (of(HubFamily::llama4)) {
      size("feedforward", {"intermediate_size_mlp"}, type_.sizes.feedforward, widths);
    } else if (of(HubFamily::mpt)) {
      model_["feedforward"] = config_.integer("expansion_ratio", 4, Range{1, 64}) * hidden_;
    } else if (keys_.feedforward[0].empty()) {
      model_["feedforward"] = four_times;
    } else {
      const std::int64_t own = type_.sizes.feedforward;
      size("feedforward", keys_.feedforward, own > 0 ? own : four_times, widths);
    }
    // Both halves of what goes into its gate together.
    if (of(HubFamily::qwen)) {
      model_["feedforward"] = model_["feedforward"].get<std::int64_t>() / 2;
      const char* const none = "no_bias";
      if (!config_.boolean(none, true)) config_.report(none, "must be true: other biases are not modelled");
    }
    const char* const adjusts = "block_auto_adjust_ff_dim";  // of LFM2, true by default
    if (type_.name == "lfm2" && config_.boolean(adjusts, true)) {
      const std::int64_t unit = config_.integer("block_multiple_of", 256, widths);
      const double factor = config_.number("block_ffn_dim_multiplier", 1.0);
      const std::int64_t two_thirds = 2 * model_["feedforward"].get<std::int64_t>() / 3;
      const auto narrowed = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
      model_["feedforward"] = (narrowed + unit - 1) / unit * unit;
    }
  }

  void key_value_heads() {
    if (of(HubFamily::falcon)) {
      const bool grouped = config_.boolean("new_decoder_architecture", false);
      if (grouped) {
        size("key_value_heads", keys_.key_value_heads, heads_, head_counts);
      } else if (config_.boolean("multi_query", true)) {
        model_["key_value_heads"] = 1;
      }
      return;
    }
    if (!flag(traits_.shares_kv)) return;
    const std::int64_t own = type_.sizes.key_value_heads;
    if (keys_.key_value_heads[0].empty()) {
      if (own > 0) model_["key_value_heads"] = own;
    } else if (own > 0 || config_.has(config_.key_of(keys_.key_value_heads))) {
      size("key_value_heads", keys_.key_value_heads, own > 0 ? own : heads_, head_counts);
    }
  }

  void choices() {
    const std::string newer = "hidden_activation";  // of Gemma, whose files may say another hidden_act
    const std::string key = config_.has(newer) ? newer : config_.key_of(keys_.activation);
    const std::string given =
        key.empty() ? std::string(traits_.activation) : config_.text(key, traits_.activation);
    const bool gated = traits_.gated;
    const bool gelu = given.starts_with("gelu") || given == "quick_gelu";
    if (gated && is_any(given, {"silu", "swish", "swiglu"})) {
      model_["activation"] = "swiglu";
    } else if (gelu || (!gated && given == "xielu")) {
      model_["activation"] = gated ? "geglu" : "gelu";
    } else if (!gated && given == "relu") {
      model_["activation"] = "relu";
    } else if (!gated && given == "relu2") {
      model_["activation"] = "squared_relu";
    } else {
      config_.report(key, fmt::format("'{}' is not modelled in a model of type {}", given, type_.name));
    }
    model_["normalization"] = traits_.layer_norm ? "layer_norm" : "rms_norm";
    if (!traits_.norm_bias) model_["norm_bias"] = false;
    if (!traits_.norm_position.empty()) model_["norm_position"] = traits_.norm_position;
    if (flag(traits_.parallel)) model_["residual"] = traits_.parallel_form;
    biases();
    model_["hidden_dropout"] = dropped(keys_.hidden_dropout);
    model_["attention_dropout"] = dropped(keys_.attention_dropout);
    if (of(HubFamily::falcon)) falcon();
    if (of(HubFamily::mpt)) mpt();
    if (of(HubFamily::opt)) opt();
  }

  bool dropped(const HubFlag& of) { return config_.above_zero(std::string(of.key), of.by_default); }

  void falcon() {
    const bool second = config_.boolean("new_decoder_architecture", false);
    if (!second && !config_.boolean("parallel_attn", true)) return;
    const bool two = second && config_.integer("num_ln_in_parallel_attn").value_or(2) == 2;
    model_["residual"] = two ? "parallel" : "parallel_shared_norm";
  }

  void mpt() {
    const bool biased = !config_.boolean("no_bias", true);
    model_["linear_bias"] = model_["qkv_bias"] = model_["norm_bias"] = biased;
    if (config_.says("attn_config/attn_type", "multiquery_attention")) model_["key_value_heads"] = 1;
    const char* const normalizes = "attn_config/qk_ln";
    if (config_.has(normalizes) && config_.boolean(normalizes, false))
      config_.report(normalizes, "must be false: a layer norm of q and k is not modelled");
  }

  void opt() {
    if (config_.integer("word_embed_proj_dim").value_or(hidden_) != hidden_) {
      config_.report("word_embed_proj_dim",
                     "must be hidden_size: projections of embeddings are not modelled");
    }
    if (!config_.boolean("do_layer_norm_before", true)) {
      config_.report("do_layer_norm_before",
                     "must be true: normalization of the stream itself is not modelled");
    }
  }

  // Of attention, which may or may not cover its projection, and of the MLP.
  void biases() {
    const bool of_qkv = flag(traits_.qkv_bias);
    const bool of_projection = flag(traits_.projection_bias);
    const bool of_mlp = flag(traits_.mlp_bias);
    model_["linear_bias"] = of_mlp;
    model_["qkv_bias"] = of_qkv;
    if (of_projection && !of_mlp) {
      config_.assume("qkv_bias",
                     "the bias of the attention projection, hidden_size numbers a layer, is left out");
    } else if (of_mlp && !of_projection) {
      config_.assume("linear_bias",
                     "a bias of the attention projection, hidden_size numbers a layer, is counted, which the "
                     "model has not");
    }
  }

  void attention() {
    if (flag(traits_.attention_gate)) model_["attention_gate"] = true;
    if (!traits_.qk_norm.empty() && flag(traits_.has_qk_norm)) model_["qk_norm"] = traits_.qk_norm;
    l2_norms_ = of(HubFamily::llama4) && config_.boolean("use_qk_norm", true);
    if (type_.name.starts_with("gemma")) {
      const bool second = type_.name == "gemma2";
      model_["attention_softcap"] = capped("attn_logit_softcapping", second);
      model_["final_softcap"] = capped("final_logit_softcapping", second);
    }
    if (of(HubFamily::gpt_oss))
      model_.update({{"attention_sinks", true}, {"clamped_activation", true}, {"scaled_rotary", true}});
    if (of(HubFamily::deepseek)) latent_attention();
  }

  void latent_attention() {
    const bool kimi = type_.name == "kimi_linear";
    const bool no_rank = !config_.has("q_lora_rank") && (config_.names("q_lora_rank") || kimi);
    Json& latent = model_["latent_attention"];
    const auto latent_size = [&](const char* ours, const std::string& key, std::int64_t by_default) {
      config_.stands_for(std::string("latent_attention/") + ours, key);
      if (kimi && !config_.has(key)) config_.report(key, "is missing, and has no default in this model type");
      latent[ours] = config_.integer(key, by_default, widths);
    };
    const char* const latent_only = "use_mla";
    if (config_.has(latent_only) && !config_.boolean(latent_only, true))
      config_.report(latent_only, "must be true: this model type is modelled with latent attention");
    const bool lite = type_.name == "glm4_moe_lite";
    if (no_rank) {
      latent["q_rank"] = 0;
    } else {
      latent_size("q_rank", "q_lora_rank", lite ? 768 : 1536);
    }
    latent_size("kv_rank", "kv_lora_rank", 512);
    latent_size("nope_head_size", "qk_nope_head_dim", lite ? 192 : 128);
    latent_size("rope_head_size", "qk_rope_head_dim", 64);
    latent_size("value_head_size", "v_head_dim", lite ? 256 : 128);
  }

  [[nodiscard]] bool capped(const std::string& key, bool by_default) {
    return config_.names(key) && !config_.has(key) ? false : config_.above_zero(key, by_default);
  }

  // As the file lists them, of words that the type knows.
  void layer_types() {
    std::vector<std::string_view> known{"full_attention", "sliding_attention"};
    if (of(HubFamily::llama4)) known.emplace_back("chunked_attention");
    with_hub_mixer([&](const auto&, const HubLayers& where) {
      if (where.word.empty()) return;
      known.push_back(where.word);
      if (of(HubFamily::granite_hybrid)) known.emplace_back("attention");
    });
    const std::string key =
        config_.key_of(std::array<std::string_view, 2>{"layer_types", "layers_block_type"});
    layer_types_ = layer_types_of(config_, key, layers_.size(), known);
  }

  // Tokens of a window, 0 where the file says that there is none.
  [[nodiscard]] std::int64_t window_tokens() {
    const HubWindow& of = traits_.window;
    const std::string key = "sliding_window";
    config_.stands_for("window", key);
    if (!of.read || (!of.only_if.empty() && !config_.boolean(std::string(of.only_if), false))) return 0;
    if (config_.names(key) && !config_.has(key)) return 0;
    const Range sizes{0, token_counts.most};
    return of.tokens > 0 ? config_.integer(key, of.tokens, sizes) : config_.integer(key, sizes).value_or(0);
  }

  // Each so many layers see all tokens: a number, or letters such as LLLG of which the last is for them.
  std::int64_t full_every() {
    const HubWindow& of = traits_.window;
    const std::string key(of.every_key);
    if (key.empty()) return of.every;
    if (!config_.is_text(key)) return config_.integer(key, of.every, layer_counts);
    const std::string letters = config_.text(key, "");
    const std::size_t first = letters.find('G');
    if (letters.empty() || first != letters.size() - 1 ||
        letters.find_first_not_of("LG") != std::string::npos)
      config_.report(key, "must be a number of layers, or letters L and one G behind them");
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(letters.size()));
  }

  void windows() {
    const HubWindow& of = traits_.window;
    window_ = window_tokens();
    const bool listed = !layer_types_.empty();
    if (window_ == 0) {
      if (of.read && !layers_.empty() &&
          std::count(layer_types_.begin(), layer_types_.end(), "sliding_attention") > 0)
        config_.report("layer_types", fmt::format("has sliding_attention, which {} leaves without a window",
                                                  of.only_if.empty() ? "sliding_window" : of.only_if));
      return;
    }
    const std::int64_t every = listed ? 0 : full_every();
    const std::int64_t first =
        !listed && !of.first.empty()
            ? config_.integer(std::string(of.first), of.first_by_default, Range{0, most_layers})
            : 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      HubLayer& layer = layers_[i];
      layer.window = i < layer_types_.size() ? layer_types_[i] == "sliding_attention"
                     : every > 0             ? (number + (of.first_sees_all ? 0 : 1)) % every != 0
                                             : number >= first;
      if (of.all_without_positions) layer.positions = layer.window;
    }
  }

  // Calls `visit` with the row of the mixer of this model type, if it has one, and where it is.
  template <class Visit>
  void with_hub_mixer(Visit visit) const {
    for_each_mixer([&](const auto& row, auto) {
      if (const HubLayers* where = hub_layers_of(row, type_.name)) visit(row, *where);
    });
  }

  void mixers() {
    with_hub_mixer([&](const auto& row, const HubLayers& where) {
      ConfigReader inner = where.object.empty() ? config_ : config_.inside(std::string(where.object));
      const HubWidths widths_of{
          .hidden = hidden_,
          .expand = config_.integer(config_.key_of(std::array<std::string_view, 2>{"mamba_expand", "expand"}))
                        .value_or(2),
          .heads = heads_,
          .head_size = model_.value("head_size", hidden_ / heads_)};
      mixer_ = sizes_of(row, &where, widths_of, inner);
      const std::vector<bool> placed = mixer_places(where, config_, inner, layer_types_, layers_.size());
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        if (!placed[i]) continue;
        layers_[i].mixer = row.name;
        layers_[i].alone = where.alone;
        layers_[i].window = false;
      }
    });
  }

  void positions() {
    std::string_view kind = traits_.positions;
    if (of(HubFamily::falcon) && config_.boolean("alibi", false)) kind = "alibi";
    // Its 7B has rotary positions and its 13B has ALiBi, which no key tells [vllm, models/baichuan.py].
    if (of(HubFamily::baichuan) && hidden_ != 4096) kind = "alibi";
    if (of(HubFamily::mpt)) {
      kind = config_.boolean("attn_config/alibi", true) ? "alibi"
             : config_.boolean("learned_pos_emb", true) ? "learned"
                                                        : "none";
    }
    const char* const embedding = "position_embedding_type";
    if (of(HubFamily::granite_hybrid) && config_.text(embedding, "nope") != "rope") kind = "none";
    model_["positions"] = kind;
    learned_ = kind == "learned";
    if (type_.name == "kimi_linear" && config_.boolean("mla_use_nope", false))
      config_.assume("positions",
                     "latent attention without positions is counted as if it rotated a part of k");
    if (of(HubFamily::llama4) || traits_.without_position_layers) layers_without_positions();
    if (of(HubFamily::llama4)) chunks();
  }

  void layers_without_positions() {
    const std::string key = "no_rope_layers";
    const auto listed = config_.list<std::int64_t>(key);  // 1: it has them
    if (!listed.empty() && listed.size() < layers_.size())
      config_.report(
          key, fmt::format("must be of the model's {} layers (found {})", layers_.size(), listed.size()));
    const Range intervals{0, most_layers};
    const std::int64_t every = listed.empty() ? config_.integer("no_rope_layer_interval", 4, intervals) : 0;
    const char* const slides = "use_sliding_window";
    if (!of(HubFamily::llama4) && config_.has(slides) && config_.boolean(slides, false))
      config_.report(slides, "must be false: windows of this type are not modelled");
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      layers_[i].positions = i < listed.size() ? listed[i] != 0 : every < 1 || (number + 1) % every != 0;
    }
  }

  void chunks() {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
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
    if (layer.alone) members["parts"] = "mixer";
    if (layer.chunk && attention_chunk_ > 0) members["attention_chunk"] = attention_chunk_;
    if (!layer.positions) members["positions"] = "none";
    if (layer.positions && l2_norms_) members["qk_norm"] = "l2";
    return members;
  }

  void lay_out() {
    if (layers_.empty()) return;  // their number is refused
    if (experts_.empty()) {
      for (HubLayer& layer : layers_) layer.experts = false;
    }
    model_.update(layer_members(layers_, [&](const HubLayer& layer) { return members_of(layer); }));
  }

  void lengths() {
    const std::string key = config_.key_of(keys_.positions);
    const std::int64_t own = type_.sizes.positions;
    if (learned_) {
      constexpr std::int64_t opt_offset =
          2;  // rows before the first position [OPTLearnedPositionalEmbedding]
      const std::int64_t rows = config_.integer(key, own, token_counts);
      model_["sequence"] = rows;
      model_["max_positions"] = rows + (of(HubFamily::opt) ? opt_offset : 0);
      config_.assume("sequence", fmt::format("sequence is {}, as many as there are learned positions", rows));
      return;
    }
    assume_length(config_,
                  own > 0 ? config_.integer(key, own, token_counts) : config_.integer(key, token_counts),
                  model_);
  }

  ConfigReader& config_;
  const HubType& type_;
  const HubTraits& traits_;
  const HubKeys& keys_;
  Json model_ = Json::object();
  Json experts_ = Json::object();
  Json mixer_ = Json::object();
  std::vector<HubLayer> layers_;
  std::int64_t hidden_ = 0;
  std::int64_t heads_ = 0;
  std::vector<std::string> layer_types_;  // as the file lists them
  std::int64_t window_ = 0;
  std::int64_t attention_chunk_ = 0;
  bool l2_norms_ = false;
  bool learned_ = false;
};

}  // namespace

Json model_file_of(ConfigReader& config, const HubType& type) {
  if (type.traits.family == HubFamily::nemotron_h) return hybrid_file_of(config, type);
  return Translation(config, type).translate();
}

}  // namespace headroom

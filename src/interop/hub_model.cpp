#include "interop/hub_model.hpp"

#include <algorithm>
#include <utility>

#include "headroom/model/transformer.hpp"
#include "interop/hub_assumptions.hpp"
#include "interop/hub_hybrid.hpp"
#include "interop/hub_layers.hpp"

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
    mixture();
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

  void sizes() {
    const bool gpt2 = of(HubFamily::gpt2);
    hidden_ = config_.integer(gpt2 ? "n_embd" : "hidden_size", type_.hidden);
    heads_ = config_.integer(gpt2 ? "n_head" : "num_attention_heads", type_.heads);
    layers_.resize(layer_count_of(config_, gpt2 ? "n_layer" : "num_hidden_layers", type_.layers));
    const std::string width = gpt2                    ? "n_inner"
                              : of(HubFamily::opt)    ? "ffn_dim"
                              : of(HubFamily::llama4) ? "intermediate_size_mlp"
                                                      : "intermediate_size";
    feedforward_ =
        gpt2 ? config_.integer(width).value_or(4 * hidden_) : config_.integer(width, type_.feedforward);
    model_["hidden"] = hidden_;
    model_["feedforward"] = feedforward_;
    model_["heads"] = heads_;
    if (!of(HubFamily::deepseek)) {
      if (type_.key_value_heads > 0) {
        model_["key_value_heads"] = config_.integer("num_key_value_heads", type_.key_value_heads);
      } else if (const auto given = config_.integer("num_key_value_heads")) {
        model_["key_value_heads"] = *given;
      }
      const auto head_size = config_.integer("head_dim");
      if (head_size || type_.head_size > 0) model_["head_size"] = head_size.value_or(type_.head_size);
    }
    model_["vocabulary"] = config_.integer("vocab_size", type_.vocabulary);
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
        config_.tell("the bias of the attention projection, hidden_size numbers a layer, is left out");
      }
    }
    model_["linear_bias"] = of_linears;
    model_["qkv_bias"] = of_qkv;
  }

  void attention() {
    if (is("qwen3") || is("qwen3_moe") || is("gemma3") || is("gemma3_text") ||
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
    constexpr std::int64_t q_rank = 1536;
    constexpr std::int64_t kv_rank = 512;
    constexpr std::int64_t head_size = 128;
    constexpr std::int64_t rope_size = 64;
    const bool no_rank = config_.names("q_lora_rank") && !config_.has("q_lora_rank");
    model_["latent_attention"] = {{"q_rank", no_rank ? 0 : config_.integer("q_lora_rank", q_rank)},
                                  {"kv_rank", config_.integer("kv_lora_rank", kv_rank)},
                                  {"nope_head_size", config_.integer("qk_nope_head_dim", head_size)},
                                  {"rope_head_size", config_.integer("qk_rope_head_dim", rope_size)},
                                  {"value_head_size", config_.integer("v_head_dim", head_size)}};
  }

  [[nodiscard]] bool capped(const std::string& key, bool by_default) {
    return config_.names(key) ? config_.has(key) && config_.above_zero(key, false) : by_default;
  }

  // Tokens of a window, null where the file says that there is none.
  [[nodiscard]] std::int64_t window(std::int64_t by_default) {
    if (config_.names("sliding_window") && !config_.has("sliding_window")) return 0;
    return by_default > 0 ? config_.integer("sliding_window", by_default)
                          : config_.integer("sliding_window").value_or(0);
  }

  void windows() {
    const std::vector<std::string> types = layer_types_of(config_, layers_.size(), of(HubFamily::llama4));
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
    const std::int64_t every = gemma3 ? config_.integer("sliding_window_pattern").value_or(6)
                               : is("gemma2") || of(HubFamily::gpt_oss) ? 2
                                                                        : 0;  // each of so many is full
    const std::int64_t first = qwen ? config_.integer("max_window_layers").value_or(28) : 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      layers_[i].window = i < types.size() ? types[i] == "sliding_attention"
                          : every > 0      ? (number + 1) % every != 0
                                           : number >= first;
    }
  }

  void expert_layers(std::int64_t dense_first, std::int64_t step, const std::vector<std::size_t>& dense) {
    if (step < 1) return config_.report("decoder_sparse_step", "must be at least 1");
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const bool listed = std::find(dense.begin(), dense.end(), i) != dense.end();
      layers_[i].experts = number >= dense_first && (number + 1) % step == 0 && !listed;
    }
  }

  void mixture() {
    if (of(HubFamily::mixtral)) {
      experts("num_local_experts", 8, 2, feedforward_);
      expert_layers(0, 1, {});
    } else if (of(HubFamily::qwen_moe)) {
      const bool second = is("qwen2_moe");
      const char* count = config_.has("num_experts") ? "num_experts" : "num_local_experts";
      experts(config_.has(count) ? count : "num_experts", second ? 60 : 128, second ? 4 : 8,
              config_.integer("moe_intermediate_size", second ? 1408 : 768));
      if (second) {
        experts_["shared_feedforward"] = config_.integer("shared_expert_intermediate_size", 5632);
        experts_["shared_gate"] = true;
      }
      if (!config_.boolean("norm_topk_prob", false)) experts_["scores"] = "softmax_before_choice";
      expert_layers(0, config_.integer("decoder_sparse_step").value_or(1),
                    config_.places("mlp_only_layers", layers_.size()));
    } else if (of(HubFamily::deepseek) || of(HubFamily::glm)) {
      const bool v2 = is("deepseek_v2");
      const bool glm = of(HubFamily::glm);
      const std::int64_t width = config_.integer("moe_intermediate_size", v2 ? 1407 : glm ? 1408 : 2048);
      const char* count = glm && config_.has("num_experts") ? "num_experts" : "n_routed_experts";
      if (v2 && !config_.has("num_experts_per_tok")) {
        config_.report("num_experts_per_tok", "is missing, and has no default in this model type");
      }
      experts(count, v2 ? 64 : glm ? 128 : 256, 8, width);
      const std::int64_t by_default = config_.names("n_shared_experts") ? 0 : v2 ? 2 : 1;  // null is none
      const std::int64_t shared = config_.integer("n_shared_experts").value_or(by_default);
      if (shared > 0) experts_["shared_feedforward"] = shared * width;
      experts_["scores"] = v2 ? "softmax_before_choice" : "sigmoid";
      if (!v2) experts_["router_bias"] = true;
      const bool limited = !v2 || config_.text("topk_method", "greedy") == "group_limited_greedy";
      if (limited) expert_groups(v2 || glm ? 1 : 8, v2 || glm ? 1 : 4);
      if (config_.integer("moe_layer_freq").value_or(1) != 1) config_.report("moe_layer_freq", "must be 1");
      expert_layers(config_.integer("first_k_dense_replace", v2 ? 0 : glm ? 1 : 3), 1, {});
      if (const std::int64_t depths = config_.integer("num_nextn_predict_layers").value_or(0); depths > 0) {
        model_["mtp_layers"] = depths;
      }
    } else if (of(HubFamily::gpt_oss)) {
      experts("num_local_experts", 128, 4, feedforward_);
      experts_["router_bias"] = true;
      expert_layers(0, 1, {});
    } else if (of(HubFamily::llama4)) {
      const std::int64_t width = config_.integer("intermediate_size", 8192);
      experts("num_local_experts", 16, 1, width);
      experts_["shared_feedforward"] = width;
      experts_["scores"] = "sigmoid";
      experts_["scale_inputs"] = true;
      expert_layers(0, config_.integer("interleave_moe_layer_step").value_or(1), {});
      if (config_.has("moe_layers")) {
        const auto listed = config_.places("moe_layers", layers_.size());
        for (HubLayer& layer : layers_) layer.experts = false;
        for (const std::size_t i : listed) layers_[i].experts = true;
      }
    }
  }

  void experts(const std::string& count, std::int64_t by_default, std::int64_t per_token,
               std::int64_t width) {
    experts_ = {{"count", config_.integer(count, by_default)},
                {"per_token", config_.integer("num_experts_per_tok", per_token)},
                {"feedforward", width}};
  }

  void expert_groups(std::int64_t groups, std::int64_t per_token) {
    const auto of_file = [&](const std::string& key, std::int64_t by_default) {
      return config_.names(key) ? config_.integer(key).value_or(1) : config_.integer(key, by_default);
    };
    const std::int64_t count = of_file("n_group", groups);  // null is no limit
    if (count != 1)
      experts_.update({{"groups", count}, {"groups_per_token", of_file("topk_group", per_token)}});
  }

  void positions() {
    model_["positions"] = learned_positions() ? "learned" : "rotary";
    if (!of(HubFamily::llama4)) return;
    const auto listed = config_.list<std::int64_t>("no_rope_layers");  // 1: it has them
    const std::int64_t every = config_.integer("no_rope_layer_interval").value_or(4);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      layers_[i].positions = i < listed.size() ? listed[i] != 0 : every < 1 || (number + 1) % every != 0;
    }
    config_.tell("attention in chunks is counted as attention to all tokens");
  }

  [[nodiscard]] Json members_of(const HubLayer& layer) const {
    Json members = Json::object();
    if (layer.experts) members["experts"] = experts_;
    if (layer.window) members["window"] = window_;
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
    const auto longest = config_.integer(key);
    if (learned_positions()) {
      constexpr std::int64_t opt_offset =
          2;  // rows before the first position [OPTLearnedPositionalEmbedding]
      const std::int64_t rows = longest.value_or(of(HubFamily::gpt2) ? 1024 : 2048);
      model_["sequence"] = rows;
      model_["max_positions"] = rows + (of(HubFamily::opt) ? opt_offset : 0);
      config_.tell(fmt::format("sequence is {}, as many as there are learned positions", rows));
      return;
    }
    assume_length(config_, longest, model_);
  }

  ConfigReader& config_;
  const HubType& type_;
  Json model_ = Json::object();
  Json experts_ = Json::object();
  std::vector<HubLayer> layers_;
  std::int64_t hidden_ = 0;
  std::int64_t heads_ = 0;
  std::int64_t feedforward_ = 0;
  std::int64_t window_ = 0;
  bool l2_norms_ = false;
};

}  // namespace

Json model_file_of(ConfigReader& config, const HubType& type) {
  if (type.family == HubFamily::nemotron_h) return hybrid_file_of(config, type);
  return Translation(config, type).translate();
}

}  // namespace headroom

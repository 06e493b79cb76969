// What tells the model types of Hugging Face transformers apart: names and defaults of their keys, and the form
// of their layers. hub_types.hpp has a row for each type.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headroom {

// Names of one thing in config.json, the configuration class's own first. "a/b" is the member b of the object a.
using HubNames = std::array<std::string_view, 3>;

// A member that is true or false. Without a key: always `by_default`.
struct HubFlag {
  std::string_view key{};
  bool by_default = false;
};

struct HubKeys {
  HubNames hidden{"hidden_size"};
  HubNames heads{"num_attention_heads"};
  HubNames layers{"num_hidden_layers"};
  HubNames feedforward{"intermediate_size"};
  HubNames key_value_heads{"num_key_value_heads"};
  HubNames head_size{"head_dim"};
  HubNames vocabulary{"vocab_size"};
  HubNames activation{"hidden_act"};  // none: always the default
  HubNames positions{"max_position_embeddings"};
  HubNames tied{"tie_word_embeddings"};
  HubFlag hidden_dropout{"resid_pdrop"};
  HubFlag attention_dropout{"attention_dropout"};
};

inline constexpr HubKeys common_keys{};
inline constexpr HubKeys gpt2_keys{.hidden = {"n_embd", "hidden_size"},
                                   .heads = {"n_head", "num_attention_heads"},
                                   .layers = {"n_layer", "num_hidden_layers"},
                                   .feedforward = {"n_inner"},
                                   .activation = {"activation_function"},
                                   .positions = {"n_positions"},
                                   .hidden_dropout = {"resid_pdrop", true},
                                   .attention_dropout = {"attn_pdrop", true}};

// Layers whose attention sees a window of tokens.
struct HubWindow {
  bool read = false;           // the type has `sliding_window`
  std::int64_t tokens = 0;     // by default; 0: none
  std::string_view only_if{};  // a flag, false by default, without which there is none
  std::int64_t every = 0;      // each so many layers sees all tokens; 0: none does
  std::string_view every_key{};
  bool first_sees_all = false;  // of every so many the first does, not the last
  std::string_view first{};     // key of the first layer with a window
  std::int64_t first_by_default = 0;
  bool all_without_positions = false;  // layers that see all tokens have no positions
};

struct HubExperts {
  HubNames count{};
  std::int64_t count_by_default = 0;  // 0: the file must say it
  HubNames per_token{"num_experts_per_tok"};
  std::int64_t per_token_by_default = 0;  // likewise
  HubNames width{};                       // none: the MLP's
  std::int64_t width_by_default = 0;      // likewise; -1: the MLP's
  bool one_is_none = false;               // a layer of one expert has an MLP
  HubNames shared{};                      // number of shared experts
  std::int64_t shared_by_default = 0;
  HubNames shared_width{};  // of all of them together, or of one where there is a number too
  std::int64_t shared_width_by_default = 0;
  bool shared_gate = false;
  std::string_view scores = "softmax";
  std::string_view scores_key{};  // where the file says which they are
  HubFlag normalized{"", true};   // probabilities of the chosen experts; else a softmax before the choice
  HubFlag bias{};                 // of the scores
  HubNames first{};               // the first layer with experts, from 0
  std::int64_t first_by_default = 0;
  std::string_view last{};  // and the last; -1: the model's
  HubNames step{};          // each so many layers have experts
  std::int64_t step_by_default = 1;
  std::string_view offset{};  // and this one of so many, from 0; none: the last
  std::int64_t offset_by_default = 0;
  std::string_view dense_layers{};  // list of layers without
  std::int64_t groups = 0;          // n_group and topk_group by default; 0: the type has no groups
  std::int64_t groups_per_token = 0;
};

// What only one family has: read by a function of its own in hub_model.cpp.
enum class HubFamily : std::uint8_t {
  plain,
  arctic,
  baichuan,
  deepseek,
  falcon,
  gpt_oss,
  granite_hybrid,
  llama4,
  mpt,
  nemotron_h,
  opt,
  qwen
};

struct HubTraits {
  bool tied = false;
  std::string_view activation = "silu";
  bool gated = true;
  bool layer_norm = false;
  bool norm_bias = true;  // of a layer norm
  std::string_view norm_position{};
  HubFlag parallel{};  // attention and MLP
  std::string_view parallel_form = "parallel";
  std::string_view qk_norm{};
  HubFlag has_qk_norm{"", true};
  HubFlag qkv_bias{"attention_bias"};
  HubFlag projection_bias{"attention_bias"};
  HubFlag mlp_bias{"mlp_bias"};
  HubFlag attention_gate{};
  std::string_view positions = "rotary";
  HubFlag shares_kv{"", true};           // false: as many key/value heads as heads
  bool without_position_layers = false;  // no_rope_layers and no_rope_layer_interval
  std::string_view predictors{};         // key of the depths of multi-token prediction
  const HubKeys* keys = &common_keys;
  HubWindow window{};
  HubExperts experts{};
  std::string_view left_out{};  // a sentence: small parts that are not counted
  HubFamily family = HubFamily::plain;
};

struct HubSizes {
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  std::int64_t feedforward = 0;  // of the MLP; 0: four times hidden
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;  // 0: as many as heads
  std::int64_t head_size = 0;        // 0: hidden / heads
  std::int64_t positions = 0;        // longest sequence; 0: none is known
};

struct HubType {
  std::string_view name;
  HubSizes sizes;
  HubTraits traits{};
};

}  // namespace headroom

// Forms of layers, windows and mixtures of experts that rows of hub_types.hpp share.
#pragma once

#include "interop/hub_traits.hpp"

namespace headroom {
namespace hub {

inline constexpr HubFlag always{"", true};
inline constexpr HubFlag never{"", false};

constexpr HubTraits tied(HubTraits traits) {
  traits.tied = true;
  return traits;
}
constexpr HubTraits with_window(HubTraits traits, const HubWindow& window) {
  traits.window = window;
  return traits;
}
constexpr HubTraits with_experts(HubTraits traits, const HubExperts& experts) {
  traits.experts = experts;
  return traits;
}
// All linears have biases, or none has.
constexpr HubTraits with_biases(HubTraits traits, HubFlag all) {
  traits.qkv_bias = traits.projection_bias = traits.mlp_bias = all;
  return traits;
}
constexpr HubTraits with_qkv_bias(HubTraits traits, HubFlag qkv) {
  traits.qkv_bias = qkv;
  traits.projection_bias = traits.mlp_bias = never;
  return traits;
}

inline constexpr HubTraits llama{};
inline constexpr HubTraits no_biases = with_biases({}, never);
inline constexpr HubTraits qwen2 = with_qkv_bias({}, always);
inline constexpr HubKeys qwen_keys{
    .key_value_heads = {}, .head_size = {"kv_channels"}, .activation = {}, .positions = {"seq_length"}};
inline constexpr HubTraits qwen = with_qkv_bias({.keys = &qwen_keys, .family = HubFamily::qwen}, always);
inline constexpr HubTraits qwen3{.qk_norm = "per_head"};
inline constexpr HubTraits olmo2{.norm_position = "after", .qk_norm = "full"};
inline constexpr HubTraits gemma{.tied = true, .activation = "gelu_pytorch_tanh"};
inline constexpr HubTraits gemma2{.tied = true, .activation = "gelu_pytorch_tanh", .norm_position = "both"};
inline constexpr HubTraits gemma3{
    .tied = true, .activation = "gelu_pytorch_tanh", .norm_position = "both", .qk_norm = "per_head"};
inline constexpr HubTraits glm = with_qkv_bias({}, {"attention_bias", true});
inline constexpr HubTraits glm4 = with_qkv_bias({.norm_position = "both"}, {"attention_bias", true});
inline constexpr HubTraits cohere{.tied = true,
                                  .layer_norm = true,
                                  .norm_bias = false,
                                  .parallel = always,
                                  .parallel_form = "parallel_shared_norm",
                                  .qk_norm = "full",
                                  .has_qk_norm = {"use_qk_norm"}};
inline constexpr HubTraits exaone4{.norm_position = "after", .qk_norm = "per_head"};

// An MLP of two linears, layer norms and biases.
inline constexpr HubTraits gpt = with_biases({.tied = true,
                                              .activation = "gelu_new",
                                              .gated = false,
                                              .layer_norm = true,
                                              .positions = "learned",
                                              .keys = &gpt2_keys},
                                             always);
inline constexpr HubKeys bigcode_keys = [] {
  HubKeys keys = gpt2_keys;
  keys.key_value_heads = {};
  return keys;
}();
inline constexpr HubTraits bigcode = [] {
  HubTraits traits = gpt;
  traits.activation = "gelu_pytorch_tanh";
  traits.keys = &bigcode_keys;
  traits.shares_kv = {"multi_query", true};
  return traits;
}();
inline constexpr HubKeys gptj_keys = [] {
  HubKeys keys = gpt2_keys;
  keys.hidden_dropout.by_default = keys.attention_dropout.by_default = false;
  return keys;
}();
inline constexpr HubTraits gptj{.activation = "gelu_new",
                                .gated = false,
                                .layer_norm = true,
                                .parallel = always,
                                .parallel_form = "parallel_shared_norm",
                                .qkv_bias = never,
                                .projection_bias = never,
                                .mlp_bias = always,
                                .keys = &gptj_keys,
                                .left_out = "the output layer's bias, a number a word, is left out"};
inline constexpr HubKeys neox_keys{.hidden_dropout = {"hidden_dropout"}};
inline constexpr HubTraits neox{.activation = "gelu",
                                .gated = false,
                                .layer_norm = true,
                                .parallel = {"use_parallel_residual", true},
                                .qkv_bias = {"attention_bias", true},
                                .projection_bias = always,
                                .mlp_bias = always,
                                .keys = &neox_keys};
inline constexpr HubKeys opt_keys{
    .feedforward = {"ffn_dim"}, .activation = {"activation_function"}, .hidden_dropout = {"dropout", true}};
inline constexpr HubTraits opt = with_biases({.tied = true,
                                              .activation = "relu",
                                              .gated = false,
                                              .layer_norm = true,
                                              .positions = "learned",
                                              .keys = &opt_keys,
                                              .family = HubFamily::opt},
                                             {"enable_bias", true});
inline constexpr HubKeys bloom_keys{.hidden = {"hidden_size", "n_embed"},
                                    .heads = {"n_head", "num_attention_heads"},
                                    .layers = {"n_layer", "num_hidden_layers"},
                                    .feedforward = {},
                                    .activation = {},
                                    .positions = {"seq_length"},
                                    .hidden_dropout = {"hidden_dropout"}};
inline constexpr HubTraits bloom =
    with_biases({.tied = true,
                 .activation = "gelu",
                 .gated = false,
                 .layer_norm = true,
                 .positions = "alibi",
                 .keys = &bloom_keys,
                 .left_out = "the normalization of the embedding, 2 hidden_size numbers, is left out"},
                always);
inline constexpr HubKeys falcon_keys{.hidden = {"hidden_size", "n_embed"},
                                     .heads = {"num_attention_heads", "n_head"},
                                     .layers = {"num_hidden_layers", "n_layer"},
                                     .feedforward = {"ffn_hidden_size"},
                                     .key_value_heads = {"num_kv_heads", "n_head_kv"},
                                     .head_size = {},
                                     .activation = {"activation"},
                                     .hidden_dropout = {"hidden_dropout"}};
inline constexpr HubTraits falcon = with_biases({.tied = true,
                                                 .activation = "gelu",
                                                 .gated = false,
                                                 .layer_norm = true,
                                                 .keys = &falcon_keys,
                                                 .family = HubFamily::falcon},
                                                {"bias"});
inline constexpr HubKeys mpt_keys{.hidden = {"d_model"},
                                  .heads = {"n_heads"},
                                  .layers = {"n_layers"},
                                  .feedforward = {},
                                  .key_value_heads = {"attn_config/kv_n_heads"},
                                  .head_size = {},
                                  .activation = {},
                                  .positions = {"max_seq_len"},
                                  .attention_dropout = {"attn_config/attn_pdrop"}};
inline constexpr HubTraits mpt{.tied = true,
                               .activation = "gelu",
                               .gated = false,
                               .layer_norm = true,
                               .keys = &mpt_keys,
                               .family = HubFamily::mpt};
inline constexpr HubTraits phi =
    with_biases({.activation = "gelu_new",
                 .gated = false,
                 .layer_norm = true,
                 .parallel = always,
                 .parallel_form = "parallel_shared_norm",
                 .qk_norm = "per_head",
                 .has_qk_norm = {"qk_layernorm"},
                 .left_out = "the output layer's bias, a number a word, is left out"},
                always);
inline constexpr HubTraits nemotron{.activation = "relu2", .gated = false, .layer_norm = true};
inline constexpr HubTraits persimmon =
    with_biases({.activation = "relu2",
                 .gated = false,
                 .layer_norm = true,
                 .qk_norm = "per_head",
                 .has_qk_norm = {"qk_layernorm", true},
                 .keys = &neox_keys,
                 .left_out = "biases of the normalizations of q and k are left out"},
                always);
inline constexpr HubKeys starcoder2_keys{.hidden_dropout = {"residual_dropout"}};
inline constexpr HubTraits starcoder2 = with_biases({.tied = true,
                                                     .activation = "gelu_pytorch_tanh",
                                                     .gated = false,
                                                     .layer_norm = true,
                                                     .keys = &starcoder2_keys,
                                                     .window = {.read = true}},
                                                    {"use_bias", true});
inline constexpr HubTraits stablelm{.layer_norm = true,
                                    .parallel = {"use_parallel_residual"},
                                    .parallel_form = "parallel_shared_norm",
                                    .qk_norm = "full",
                                    .has_qk_norm = {"qk_layernorm"},
                                    .qkv_bias = {"use_qkv_bias"},
                                    .projection_bias = never,
                                    .mlp_bias = never,
                                    .keys = &neox_keys};
inline constexpr HubTraits orion = with_biases({.layer_norm = true}, never);
inline constexpr HubTraits apertus{.activation = "xielu",
                                   .gated = false,
                                   .qk_norm = "per_head",
                                   .mlp_bias = never,
                                   .left_out =
                                       "xielu is counted as gelu, which saves its input too; its two "
                                       "numbers a layer are left out"};
inline constexpr HubTraits arcee{.activation = "relu2", .gated = false};
inline constexpr HubKeys seed_keys{.hidden_dropout = {"residual_dropout", true},
                                   .attention_dropout = {"attention_dropout", true}};
inline constexpr HubTraits seed_oss{
    .qkv_bias = {"attention_bias", true}, .projection_bias = {"attention_out_bias"}, .keys = &seed_keys};
inline constexpr HubKeys exaone_keys{.layers = {"num_layers", "num_hidden_layers"},
                                     .activation = {"activation_function", "hidden_act"}};
inline constexpr HubTraits exaone = [] {
  HubTraits traits = no_biases;
  traits.keys = &exaone_keys;
  return traits;
}();
inline constexpr HubKeys chatglm_keys{.layers = {"num_layers", "num_hidden_layers"},
                                      .feedforward = {"ffn_hidden_size"},
                                      .key_value_heads = {"multi_query_group_num"},
                                      .head_size = {"kv_channels"},
                                      .vocabulary = {"padded_vocab_size", "vocab_size"},
                                      .activation = {},
                                      .positions = {"seq_length"},
                                      .hidden_dropout = {"hidden_dropout"}};
inline constexpr HubTraits chatglm{.qkv_bias = {"add_qkv_bias"},
                                   .projection_bias = {"add_bias_linear"},
                                   .mlp_bias = {"add_bias_linear"},
                                   .shares_kv = {"multi_query_attention"},
                                   .keys = &chatglm_keys};
inline constexpr HubKeys lfm2_keys{.feedforward = {"intermediate_size", "block_ff_dim"},
                                   .tied = {"tie_word_embeddings", "tie_embedding"}};
inline constexpr HubTraits lfm2{.tied = true, .qk_norm = "per_head", .keys = &lfm2_keys};
inline constexpr HubKeys dbrx_keys{.hidden = {"d_model"},
                                   .heads = {"n_heads"},
                                   .layers = {"n_layers"},
                                   .feedforward = {"ffn_config/ffn_hidden_size"},
                                   .key_value_heads = {"attn_config/kv_n_heads"},
                                   .head_size = {},
                                   .activation = {},
                                   .positions = {"max_seq_len"},
                                   .attention_dropout = {"attn_config/attn_pdrop"}};

inline constexpr HubWindow of_all_layers{.read = true, .tokens = 4096};
inline constexpr HubWindow if_given{.read = true};
inline constexpr HubWindow qwen_window{.read = true,
                                       .tokens = 4096,
                                       .only_if = "use_sliding_window",
                                       .first = "max_window_layers",
                                       .first_by_default = 28};
inline constexpr HubWindow exaone4_window{.read = true,
                                          .tokens = 4096,
                                          .every = 4,
                                          .every_key = "sliding_window_pattern",
                                          .all_without_positions = true};

inline constexpr HubNames local_experts{"num_local_experts", "num_experts"};
inline constexpr HubNames experts{"num_experts", "num_local_experts"};
inline constexpr HubNames routed{"n_routed_experts", "num_experts"};
inline constexpr HubNames expert_width{"moe_intermediate_size"};
inline constexpr HubFlag top_k_normalized{"norm_topk_prob", false};

inline constexpr HubExperts mixtral{.count = local_experts, .count_by_default = 8, .per_token_by_default = 2};
// As in qwen2_moe, with the numbers of the others below.
inline constexpr HubExperts qwen2_moe{.count = experts,
                                      .count_by_default = 60,
                                      .per_token_by_default = 4,
                                      .width = expert_width,
                                      .width_by_default = 1408,
                                      .shared_width = {"shared_expert_intermediate_size"},
                                      .shared_width_by_default = 5632,
                                      .shared_gate = true,
                                      .normalized = top_k_normalized,
                                      .step = {"decoder_sparse_step"},
                                      .dense_layers = "mlp_only_layers"};
constexpr HubExperts qwen_shared(std::int64_t count, std::int64_t per_token, HubFlag normalized) {
  HubExperts of = qwen2_moe;
  of.count_by_default = count;
  of.per_token_by_default = per_token;
  of.width_by_default = of.shared_width_by_default = 512;
  of.normalized = normalized;
  return of;
}
constexpr HubExperts qwen_unshared(std::int64_t count, std::int64_t per_token, std::int64_t width,
                                   HubFlag normalized) {
  HubExperts of = qwen_shared(count, per_token, normalized);
  of.width_by_default = width;
  of.shared_width = {};
  of.shared_gate = false;
  return of;
}
// A sigmoid of each score, with a bias, after the first dense layers.
inline constexpr HubExperts deepseek_v3{.count = routed,
                                        .count_by_default = 256,
                                        .per_token_by_default = 8,
                                        .width = expert_width,
                                        .width_by_default = 2048,
                                        .shared = {"n_shared_experts"},
                                        .shared_by_default = 1,
                                        .scores = "sigmoid",
                                        .bias = always,
                                        .first = {"first_k_dense_replace"},
                                        .first_by_default = 3,
                                        .groups = 8,
                                        .groups_per_token = 4};
inline constexpr HubExperts deepseek_v2 = [] {
  HubExperts of = deepseek_v3;
  of.count_by_default = 64;
  of.per_token_by_default = 0;
  of.width_by_default = 1407;
  of.shared_by_default = 2;
  of.scores = "softmax_before_choice";
  of.bias = never;
  of.first_by_default = 0;
  of.groups = of.groups_per_token = 1;
  return of;
}();
inline constexpr HubExperts deepseek_v1 = [] {
  HubExperts of = deepseek_v2;
  of.count_by_default = 0;
  of.shared_by_default = 0;
  of.scores = "softmax";
  of.normalized = top_k_normalized;
  of.groups = of.groups_per_token = 0;
  return of;
}();
constexpr HubExperts sigmoid_experts(std::int64_t count, std::int64_t per_token, std::int64_t width,
                                     std::int64_t shared, std::int64_t first) {
  HubExperts of = deepseek_v3;
  of.count_by_default = count;
  of.per_token_by_default = per_token;
  of.width_by_default = width;
  of.shared_by_default = shared;
  of.first_by_default = first;
  of.groups = of.groups_per_token = 1;
  return of;
}
inline constexpr HubExperts kimi_linear = [] {
  HubExperts of = sigmoid_experts(0, 0, 0, 0, 0);
  of.count = {"num_experts", "n_routed_experts"};
  of.per_token = {"num_experts_per_token"};
  of.shared = {"num_shared_experts"};
  of.groups = of.groups_per_token = 0;
  return of;
}();
inline constexpr HubExperts with_num_experts(HubExperts of, HubNames first = {"first_k_dense_replace"}) {
  of.count = experts;
  of.shared = {"num_shared_experts"};
  of.first = first;
  return of;
}
inline constexpr HubExperts granite_experts = [] {
  HubExperts of = mixtral;
  of.shared_width = {"shared_intermediate_size"};
  return of;
}();
inline constexpr HubExperts granite_hybrid_experts = [] {
  HubExperts of = granite_experts;
  of.shared_width_by_default = 1024;
  return of;
}();
inline constexpr HubExperts ernie{.count = {"moe_num_experts", "num_experts"},
                                  .count_by_default = 64,
                                  .per_token = {"moe_k", "num_experts_per_tok"},
                                  .per_token_by_default = 6,
                                  .width = expert_width,
                                  .width_by_default = 1536,
                                  .shared = {"moe_num_shared_experts"},
                                  .shared_by_default = 2,
                                  .scores = "softmax_before_choice",
                                  .bias = always,
                                  .first = {"moe_layer_start_index"},
                                  .first_by_default = 1,
                                  .last = "moe_layer_end_index",
                                  .step = {"moe_layer_interval"}};
inline constexpr HubExperts hunyuan{.count = {"num_experts"},
                                    .count_by_default = 1,
                                    .per_token = {"moe_topk", "num_experts_per_tok"},
                                    .per_token_by_default = 1,
                                    .width = expert_width,
                                    .width_by_default = -1,
                                    .one_is_none = true,
                                    .shared = {"num_shared_expert"},
                                    .shared_by_default = 1};

constexpr HubTraits latent(const HubExperts& of) {
  return {.qkv_bias = never,
          .projection_bias = never,
          .mlp_bias = never,
          .predictors = "num_nextn_predict_layers",
          .experts = of,
          .family = HubFamily::deepseek};
}

// Types that differ from another in a few traits.
inline constexpr HubTraits mimo = [] {
  HubTraits traits = with_window(qwen2, qwen_window);
  traits.predictors = "num_nextn_predict_layers";
  return traits;
}();
inline constexpr HubTraits cohere2 = [] {
  HubTraits traits = cohere;
  traits.qk_norm = {};
  traits.window = {.read = true,
                   .tokens = 4096,
                   .every = 4,
                   .every_key = "sliding_window_pattern",
                   .all_without_positions = true};
  return traits;
}();
inline constexpr HubTraits smollm3 = [] {
  HubTraits traits = tied({});
  traits.without_position_layers = true;
  return traits;
}();
inline constexpr HubTraits exaone_moe = [] {
  HubTraits traits = with_window(qwen3, exaone4_window);
  traits.experts = with_num_experts(sigmoid_experts(64, 8, 1024, 1, 1));
  return traits;
}();
constexpr HubTraits with_gate(HubTraits traits) {
  traits.attention_gate = {"attn_output_gate", true};
  return traits;
}
inline constexpr HubTraits glm4_moe = [] {
  HubTraits traits = with_experts(with_qkv_bias({}, {"attention_bias"}), sigmoid_experts(128, 8, 1408, 1, 1));
  traits.qk_norm = "per_head";
  traits.has_qk_norm = {"use_qk_norm"};
  traits.predictors = "num_nextn_predict_layers";
  return traits;
}();
// Its two generations have one name: what the second adds is said by keys.
inline constexpr HubTraits bailing = [] {
  HubTraits traits =
      with_experts(with_qkv_bias({}, {"use_qkv_bias"}), with_num_experts(sigmoid_experts(0, 0, 0, 0, 0)));
  traits.qk_norm = "per_head";
  traits.has_qk_norm = {"use_qk_norm"};
  traits.predictors = "num_nextn_predict_layers";
  traits.experts.scores = "softmax";
  traits.experts.scores_key = "score_function";
  traits.experts.normalized = top_k_normalized;
  traits.experts.bias = {"moe_router_enable_expert_bias"};
  return traits;
}();
constexpr HubTraits of_family(HubFamily family, HubTraits traits) {
  traits.family = family;
  return traits;
}

}  // namespace hub
}  // namespace headroom

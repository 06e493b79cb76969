// What Megatron-LM, transformers and torchtitan call the fields of a model file.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace headroom {

struct OtherKey {
  std::string_view theirs;
  std::string_view ours;  // with dots
};

inline constexpr std::array<OtherKey, 50> other_keys{{
    {"num_layers", "layers"},
    {"num_hidden_layers", "layers"},
    {"n_layer", "layers"},
    {"n_layers", "layers"},
    {"hidden_size", "hidden"},
    {"n_embd", "hidden"},
    {"d_model", "hidden"},
    {"dim", "hidden"},
    {"ffn_hidden_size", "feedforward"},
    {"intermediate_size", "feedforward"},
    {"d_ff", "feedforward"},
    {"ffn_dim", "feedforward"},
    {"n_inner", "feedforward"},
    {"num_attention_heads", "heads"},
    {"num_heads", "heads"},
    {"n_head", "heads"},
    {"n_heads", "heads"},
    {"num_key_value_heads", "key_value_heads"},
    {"num_query_groups", "key_value_heads"},
    {"n_kv_heads", "key_value_heads"},
    {"head_dim", "head_size"},
    {"kv_channels", "head_size"},
    {"vocab_size", "vocabulary"},
    {"padded_vocab_size", "vocabulary"},
    {"seq_length", "sequence"},
    {"seq_len", "sequence"},
    {"max_seq_len", "sequence"},
    {"max_length", "sequence"},
    {"max_position_embeddings", "max_positions"},
    {"tie_word_embeddings", "tied_embeddings"},
    {"sliding_window", "window"},
    {"window_size", "window"},
    {"mtp_num_layers", "mtp_layers"},
    {"num_nextn_predict_layers", "mtp_layers"},
    {"num_experts", "experts.count"},
    {"num_moe_experts", "experts.count"},
    {"n_routed_experts", "experts.count"},
    {"num_local_experts", "experts.count"},
    {"moe_router_topk", "experts.per_token"},
    {"num_experts_per_tok", "experts.per_token"},
    {"moe_ffn_hidden_size", "experts.feedforward"},
    {"moe_intermediate_size", "experts.feedforward"},
    {"moe_shared_expert_intermediate_size", "experts.shared_feedforward"},
    {"moe_latent_size", "experts.latent"},
    {"moe_router_num_groups", "experts.groups"},
    {"n_group", "experts.groups"},
    {"moe_router_group_topk", "experts.groups_per_token"},
    {"topk_group", "experts.groups_per_token"},
    {"q_lora_rank", "latent_attention.q_rank"},
    {"kv_lora_rank", "latent_attention.kv_rank"},
}};

// Our key, or empty.
constexpr std::string_view key_called(std::string_view theirs) {
  const auto* const found = std::find_if(other_keys.begin(), other_keys.end(),
                                         [&](const OtherKey& row) { return row.theirs == theirs; });
  return found == other_keys.end() ? std::string_view() : found->ours;
}

}  // namespace headroom

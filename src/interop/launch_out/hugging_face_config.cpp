#include "interop/launch_out/hugging_face_config.hpp"

#include <algorithm>

#include "headroom/model/layer_kinds.hpp"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

const Architecture* expert_layer(const Transformer& model) {
  if (model.architecture.experts) return &model.architecture;
  for (const LayerDescription& kind : model.layer_kinds) {
    if (kind.architecture.experts) return &kind.architecture;
  }
  return nullptr;
}

// Returns whether layers are those of Llama but for the choices that name a type.
bool is_llama_like(const Architecture& layer) {
  return layer.normalization == Normalization::rms_norm && layer.activation == Activation::swiglu &&
         layer.positions == Positions::rotary && !layer.linear_bias && !layer.clamped_activation &&
         !has_mixer(layer.mixers) && layer.parts == LayerParts::both && layer.window == 0 &&
         layer.attention_chunk == 0 && !layer.attention_sinks && !layer.attention_softcap &&
         !layer.attention_gate && !layer.final_softcap && layer.norm_position == NormPosition::before &&
         layer.residual == ResidualForm::sequential;
}

void put_llama(Json& json, const Transformer& model, std::int64_t positions) {
  json["hidden_size"] = model.hidden;
  json["intermediate_size"] = model.feedforward;
  json["num_hidden_layers"] = model.layers;
  json["num_attention_heads"] = model.heads;
  json["num_key_value_heads"] = model.key_value_heads;
  json["head_dim"] = model.head_size;
  json["vocab_size"] = padded_vocabulary(model, 1);  // transformers adds no rows
  json["max_position_embeddings"] = positions;
  json["hidden_act"] = "silu";
  json["rms_norm_eps"] = 1e-5;
  json["tie_word_embeddings"] = model.architecture.tied_embeddings;
}

Json named(std::string_view type, std::string_view architecture) {
  return {{"model_type", type}, {"architectures", {architecture}}, {"torch_dtype", "bfloat16"}};
}

std::optional<Json> gpt2(const Transformer& model, std::int64_t positions) {
  Json json = named("gpt2", "GPT2LMHeadModel");
  json["n_embd"] = model.hidden;
  json["n_layer"] = model.layers;
  json["n_head"] = model.heads;
  json["n_inner"] = model.feedforward;
  json["n_positions"] = std::max(positions, model.max_positions);
  json["vocab_size"] = padded_vocabulary(model, 1);  // transformers adds no rows
  json["activation_function"] = "gelu_new";
  json["resid_pdrop"] = json["embd_pdrop"] = model.architecture.hidden_dropout ? 0.1 : 0.0;
  json["attn_pdrop"] = model.architecture.attention_dropout ? 0.1 : 0.0;
  json["tie_word_embeddings"] = model.architecture.tied_embeddings;
  return json;
}

std::optional<Json> deepseek(const Transformer& model, const Architecture& moe, std::int64_t positions) {
  const bool dense_first =
      model.layer_runs.size() == 2 && !model.layer_kinds[model.layer_runs[0].kind].architecture.experts;
  const Experts& experts = *moe.experts;
  const bool third = experts.scores == RouterScores::sigmoid;
  const bool second = experts.scores == RouterScores::softmax_before_choice && model.mtp_layers == 0;
  if (!dense_first || (!second && !third) || experts.feedforward == 0) return std::nullopt;
  Json json =
      third ? named("deepseek_v3", "DeepseekV3ForCausalLM") : named("deepseek_v2", "DeepseekV2ForCausalLM");
  put_llama(json, model, positions);
  json.erase("head_dim");
  const LatentAttention& latent = *moe.latent_attention;
  if (latent.q_rank > 0)
    json["q_lora_rank"] = latent.q_rank;
  else
    json["q_lora_rank"] = nullptr;
  json["kv_lora_rank"] = latent.kv_rank;
  json["qk_nope_head_dim"] = latent.nope_head_size;
  json["qk_rope_head_dim"] = latent.rope_head_size;
  json["v_head_dim"] = latent.value_head_size;
  json["first_k_dense_replace"] = model.layer_runs[0].count;
  json["n_routed_experts"] = experts.count;
  json["num_experts_per_tok"] = experts.per_token;
  json["moe_intermediate_size"] = experts.feedforward;
  json["n_shared_experts"] = experts.shared_feedforward / experts.feedforward;
  json["n_group"] = experts.groups;
  json["topk_group"] = groups_per_token(experts);
  json["scoring_func"] = third ? "sigmoid" : "softmax";
  json["topk_method"] = third ? "noaux_tc" : experts.groups > 1 ? "group_limited_greedy" : "greedy";
  json["norm_topk_prob"] = third;
  if (third) json["num_nextn_predict_layers"] = model.mtp_layers;
  return json;
}

// Layers that are gpt-oss's but for their sizes and which of them have a window.
bool is_gpt_oss(const Transformer& model, const Architecture& moe) {
  const Experts& experts = *moe.experts;
  return moe.normalization == Normalization::rms_norm && moe.activation == Activation::swiglu &&
         moe.clamped_activation && moe.positions == Positions::rotary && moe.scaled_rotary &&
         moe.linear_bias && moe.qkv_bias && moe.attention_sinks && !moe.latent_attention &&
         !has_mixer(moe.mixers) && moe.qk_norm == QkNorm::none && experts.router_bias &&
         experts.scores == RouterScores::softmax && experts.shared_feedforward == 0 && model.mtp_layers == 0;
}

std::optional<Json> gpt_oss(const Transformer& model, const Architecture& moe, std::int64_t positions) {
  Json json = named("gpt_oss", "GptOssForCausalLM");
  put_llama(json, model, positions);
  if (moe.experts->feedforward > 0) json["intermediate_size"] = moe.experts->feedforward;
  json["num_local_experts"] = moe.experts->count;
  json["num_experts_per_tok"] = moe.experts->per_token;
  json["attention_bias"] = true;
  Json types = Json::array();
  for (const LayerRun& run : model.layer_runs) {
    const Architecture& layer = model.layer_kinds[run.kind].architecture;
    if (!layer.experts) return std::nullopt;
    if (layer.window > 0 && json.value("sliding_window", layer.window) != layer.window) return std::nullopt;
    if (layer.window > 0) json["sliding_window"] = layer.window;
    for (std::int64_t i = 0; i < run.count; ++i)
      types.push_back(layer.window > 0 ? "sliding_attention" : "full_attention");
  }
  if (types.empty()) return std::nullopt;
  json["layer_types"] = std::move(types);
  return json;
}

}  // namespace

std::optional<Json> hugging_face_config(const Transformer& model, std::int64_t positions) {
  const Architecture& layer = model.architecture;
  if (const Architecture* const moe = expert_layer(model); moe != nullptr && is_gpt_oss(model, *moe))
    return gpt_oss(model, *moe, positions);
  if (const Architecture* const moe = expert_layer(model); moe != nullptr && is_llama_like(*moe)) {
    if (moe->latent_attention) return deepseek(model, *moe, positions);
    const Experts& experts = *moe->experts;
    const bool plain = model.layer_kinds.empty() && model.mtp_layers == 0 &&
                       experts.shared_feedforward == 0 && experts.scores != RouterScores::sigmoid &&
                       !experts.scale_inputs && experts.latent == 0 && !moe->qkv_bias;
    if (!plain || (moe->qk_norm != QkNorm::none && moe->qk_norm != QkNorm::per_head)) return std::nullopt;
    const bool qwen = moe->qk_norm == QkNorm::per_head;
    Json json = qwen ? named("qwen3_moe", "Qwen3MoeForCausalLM") : named("mixtral", "MixtralForCausalLM");
    put_llama(json, model, positions);
    if (qwen) {
      json["moe_intermediate_size"] = experts.feedforward;
      json["num_experts"] = experts.count;
      json["norm_topk_prob"] = experts.scores == RouterScores::softmax;
    } else {
      json["intermediate_size"] = experts.feedforward;
      json["num_local_experts"] = experts.count;
    }
    json["num_experts_per_tok"] = experts.per_token;
    return json;
  }
  if (!model.layer_kinds.empty() || model.mtp_layers > 0 || layer.experts) return std::nullopt;
  if (is_llama_like(layer) && !layer.latent_attention) {
    const bool qwen3 = layer.qk_norm == QkNorm::per_head;
    if (layer.qk_norm != QkNorm::none && !qwen3) return std::nullopt;
    if (qwen3 && layer.qkv_bias) return std::nullopt;
    Json json = qwen3            ? named("qwen3", "Qwen3ForCausalLM")
                : layer.qkv_bias ? named("qwen2", "Qwen2ForCausalLM")
                                 : named("llama", "LlamaForCausalLM");
    if (layer.qkv_bias && model.head_size * model.heads != model.hidden) return std::nullopt;
    put_llama(json, model, positions);
    if (layer.qkv_bias) json.erase("head_dim");
    return json;
  }
  const bool is_gpt2 = layer.normalization == Normalization::layer_norm &&
                       layer.activation == Activation::gelu && layer.positions == Positions::learned &&
                       layer.linear_bias && layer.qkv_bias && layer.parts == LayerParts::both &&
                       layer.residual == ResidualForm::sequential &&
                       layer.norm_position == NormPosition::before && !has_mixer(layer.mixers) &&
                       model.key_value_heads == model.heads && model.head_size * model.heads == model.hidden;
  return is_gpt2 ? gpt2(model, positions) : std::nullopt;
}

}  // namespace headroom

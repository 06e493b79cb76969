#include "interop/launch_out/megatron_model.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "headroom/model/hybrid_pattern.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "interop/launch_out/megatron_words.hpp"

namespace headroom {
namespace {

// A list with a number for each layer, as --moe-layer-freq and --window-attn-skip-freq take it.
template <class Rule>
std::string by_layer(const Transformer& model, Rule rule) {
  std::string text;
  for (const LayerRun& run : model.layer_runs) {
    for (std::int64_t i = 0; i < run.count; ++i)
      text += rule(model.layer_kinds[run.kind].architecture) ? ",1" : ",0";
  }
  return "[" + text.substr(text.empty() ? 0 : 1) + "]";
}

class MegatronModel {
 public:
  MegatronModel(const Request& request, bool bridge)
      : request_(request), model_(request.model), own_(reference(model_)), words_(bridge) {}

  ModelWords run() {
    add_sizes();
    add_attention();
    add_mlp();
    add_positions();
    add_ends();
    add_experts();
    if (model_.mtp_layers > 0) add("mtp_num_layers", model_.mtp_layers);
    add_mixers();
    name_lacks();
    return {.words = words_.take(), .lacks = std::move(lacks_)};
  }

 private:
  // The layer whose sizes a model-wide flag has: the first with attention, and of those the first dense one.
  static LayerDescription reference(const Transformer& model) {
    if (model.layer_kinds.empty()) return own_layer(model);
    LayerDescription own = model.layer_kinds.front();
    for (const LayerDescription& kind : model.layer_kinds) {
      const bool better = has_attention(kind.architecture) && !has_attention(own.architecture);
      const bool dense = has_attention(kind.architecture) && own.architecture.experts.has_value() &&
                         !kind.architecture.experts;
      if (better || dense) own = kind;
    }
    return own;
  }

  void add(std::string_view name, std::string_view value) { words_.add("model", name, value); }
  void add(std::string_view name, std::int64_t value) { words_.add("model", name, std::to_string(value)); }
  void on(std::string_view name) { words_.on("model", name); }
  // A flag of Megatron-LM for a field of the configuration that Megatron-Bridge overrides.
  void either(std::string_view flag, std::string_view field, std::string_view value) {
    if (words_.bridge()) {
      add(field, value);
    } else {
      on(flag);
    }
  }
  void lack(std::string what) { lacks_.push_back(std::move(what)); }

  void add_sizes() {
    add("num_layers", model_.layers);
    add("hidden_size", model_.hidden);
    const std::int64_t feedforward = dense_feedforward();
    if (feedforward > 0) add("ffn_hidden_size", feedforward);
    add("num_attention_heads", own_.heads);
    const bool latent = own_.architecture.latent_attention.has_value();
    if (own_.key_value_heads != own_.heads && !latent) {
      if (!words_.bridge()) on("group_query_attention");
      add("num_query_groups", own_.key_value_heads);
    }
    if (!latent) add("kv_channels", own_.head_size);
  }

  // Of layers with an MLP, or of the model.
  [[nodiscard]] std::int64_t dense_feedforward() const {
    for (const LayerDescription& kind : model_.layer_kinds) {
      if (has_dense_mlp(kind.architecture)) return kind.feedforward;
    }
    return own_.feedforward;
  }

  void add_attention() {
    const Architecture& layer = own_.architecture;
    if (const auto& latent = layer.latent_attention) {
      on("multi_latent_attention");
      if (latent->q_rank > 0) add("q_lora_rank", latent->q_rank);
      add("kv_lora_rank", latent->kv_rank);
      add("qk_head_dim", latent->nope_head_size);
      add("qk_pos_emb_head_dim", latent->rope_head_size);
      add("v_head_dim", latent->value_head_size);
      // Fused rotary positions of latent attention are YaRN's, which are plain ones where the factor is 1
      // [transformer_config.py:3345, yarn_rotary_pos_embedding.py].
      const bool fused = request_.software.rotary_kernel == RotaryKernel::fused;
      add("rope_type", fused || layer.scaled_rotary ? "yarn" : "rope");
      if (fused && !layer.scaled_rotary) add("rotary_scaling_factor", "1.0");
    }
    if (layer.qk_norm == QkNorm::per_head || (layer.latent_attention && layer.qk_norm == QkNorm::none))
      on("qk_layernorm");
    if (layer.qk_norm == QkNorm::l2) on("qk_l2_norm");
    if (layer.attention_sinks) add("softmax_type", "learnable");
    if (layer.attention_gate) on("attention_output_gate");
    add_windows();
    if (layer.kernels.attention == AttentionKernel::unfused) add("attention_backend", "unfused");
  }

  void add_windows() {
    std::int64_t window = 0;
    bool one = true;
    bool all = true;
    each_architecture([&](const Architecture& layer) {
      if (!has_attention(layer)) return;
      if (layer.window == 0) {
        all = false;
      } else {
        one = one && (window == 0 || window == layer.window);
        window = layer.window;
      }
    });
    if (window == 0) return;
    if (!one) return lack("windows of several sizes: Megatron-Core has one --window-size");
    // Tokens to the left of the query, and to its right.
    add("window_size", words_.bridge() ? fmt::format("[{},0]", window - 1) : fmt::format("{},0", window - 1));
    if (!all)
      add("window_attn_skip_freq",
          "'" + by_layer(model_, [](const Architecture& layer) { return layer.window > 0; }) + "'");
  }

  template <class Visit>
  void each_architecture(Visit visit) const {
    if (model_.layer_kinds.empty()) visit(model_.architecture);
    for (const LayerDescription& kind : model_.layer_kinds) visit(kind.architecture);
  }

  void add_mlp() {
    const Architecture& layer = own_.architecture;
    add("normalization", layer.normalization == Normalization::rms_norm ? "RMSNorm" : "LayerNorm");
    if (!layer.linear_bias) either("disable_bias_linear", "add_bias_linear", "false");
    if (layer.qkv_bias && !layer.linear_bias) on("add_qkv_bias");
    if (layer.linear_bias && any_experts(model_))
      either("no_bias_dropout_fusion", "bias_dropout_fusion", "false");
    if (layer.clamped_activation) {
      if (words_.bridge())
        lack("clamped quick GeGLU: set gated_linear_unit and activation_func in pretrain_bridge.py");
      on("quick_geglu");
      add("glu_linear_offset", "1.0");
      add("activation_func_clamp_value", "7.0");
    } else if (layer.activation == Activation::swiglu) {
      if (words_.bridge()) {
        add("gated_linear_unit", "true");
        add("activation_func", "silu");
      } else {
        on("swiglu");
      }
    } else if (layer.activation == Activation::squared_relu) {
      either("squared_relu", "activation_func", "squared_relu");
    }
    add("attention_dropout", layer.attention_dropout ? "0.1" : "0.0");
    add("hidden_dropout", layer.hidden_dropout ? "0.1" : "0.0");
  }

  void add_positions() {
    const Architecture& layer = own_.architecture;
    const bool yarn = layer.scaled_rotary && !layer.latent_attention;
    switch (layer.positions) {
      case Positions::learned: add("position_embedding_type", "learned_absolute"); break;
      case Positions::rotary: add("position_embedding_type", yarn ? "yarn" : "rope"); break;
      case Positions::none: add("position_embedding_type", "none"); break;
      case Positions::alibi: lack("ALiBi: Megatron-Core has no such positions"); break;
    }
    if (layer.positions == Positions::rotary &&
        request_.software.rotary_kernel == RotaryKernel::rotate_chunks)
      either("no_rope_fusion", "apply_rope_fusion", "false");
    // At least the sequence [training/arguments.py:1354].
    if (!words_.bridge())
      add("max_position_embeddings", std::max(request_.workload.sequence, model_.max_positions));
  }

  void add_ends() {
    if (!model_.architecture.tied_embeddings)
      either("untie_embeddings_and_output_weights", "share_embeddings_and_output_weights", "false");
    if (words_.bridge()) {
      add("vocab_size", model_.vocabulary);
      add("should_pad_vocab", "true");
    }
    add("make_vocab_size_divisible_by", model_.vocabulary_multiple);
  }

  void add_experts() {
    const Experts* experts = nullptr;
    bool alike = true;
    each_architecture([&](const Architecture& layer) {
      if (!layer.experts) return;
      alike = alike && (experts == nullptr || *experts == *layer.experts);
      experts = &*layer.experts;
    });
    if (experts == nullptr) return;
    if (!alike) lack("experts of several sizes: Megatron-Core supports one size");
    add(words_.bridge() ? "num_moe_experts" : "num_experts", experts->count);
    add("moe_ffn_hidden_size", experts->feedforward);
    add("moe_router_topk", experts->per_token);
    const bool every = model_.layer_kinds.empty() || !any_layer(model_, [](const Architecture& layer) {
                         return layer.parts == LayerParts::both && !layer.experts;
                       });
    if (!every)
      add("moe_layer_freq",
          "'" + by_layer(model_, [](const Architecture& layer) { return layer.experts.has_value(); }) + "'");
    if (experts->shared_feedforward > 0)
      add("moe_shared_expert_intermediate_size", experts->shared_feedforward);
    if (experts->shared_gate) on("moe_shared_expert_gate");
    const bool sigmoid = experts->scores == RouterScores::sigmoid;
    if (sigmoid) add("moe_router_score_function", "sigmoid");
    // A softmax over one choice would be 1 [transformer_config.py:2661].
    if (experts->scores == RouterScores::softmax_before_choice || (!sigmoid && experts->per_token == 1))
      on("moe_router_pre_softmax");
    if (experts->groups > 1 && experts->groups_per_token > 0) {
      add("moe_router_num_groups", experts->groups);
      add("moe_router_group_topk", experts->groups_per_token);
    }
    if (experts->router_bias && sigmoid) on("moe_router_enable_expert_bias");
    if (experts->router_bias && !sigmoid)
      lack("router bias: Megatron-Core supports it with sigmoid scores only");
    if (experts->router_dtype == Dtype::fp32) add("moe_router_dtype", "fp32");
    add("moe_router_load_balancing_type", experts->auxiliary_loss ? "aux_loss" : "none");
    if (experts->auxiliary_loss) add("moe_aux_loss_coeff", "1e-3");
    if (experts->latent > 0) add("moe_latent_size", experts->latent);
    if (experts->scale_inputs) on("moe_apply_probs_on_input");
    if (experts->capacity_factor && !request_.strategy.moe_pad_to_capacity)
      add("moe_expert_capacity_factor", fmt::format("{:g}", *experts->capacity_factor));
  }

  void add_mixers() {
    bool mamba = false;
    each_architecture([&](const Architecture& layer) {
      if (!layer.mixers.mamba || mamba) return;
      mamba = true;
      add("mamba_num_heads", layer.mixers.mamba->heads);
      add("mamba_head_dim", layer.mixers.mamba->head_size);
      add("mamba_num_groups", layer.mixers.mamba->groups);
      add("mamba_state_dim", layer.mixers.mamba->state_size);
    });
    if (mamba && !words_.bridge())
      add("spec", "megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec");
    if (any_mixer(model_, &Mixers::gated_delta_net) || any_mixer(model_, &Mixers::kimi_delta))
      lack("delta-rule attention: needs a layer specification in Python");
  }

  void name_lacks() {
    const auto any = [&](auto rule) { return any_layer(model_, rule); };
    if (any([](const Architecture& layer) { return layer.attention_softcap || layer.final_softcap; }))
      lack("soft caps: Megatron-Core has none");
    if (any([](const Architecture& layer) { return layer.norm_position != NormPosition::before; }))
      lack("normalizations after attention and MLP: needs a layer specification in Python");
    if (any([](const Architecture& layer) { return layer.residual != ResidualForm::sequential; }))
      lack("parallel attention and MLP: Megatron-Core runs one after the other");
    if (any([](const Architecture& layer) { return layer.attention_chunk > 0; }))
      lack("chunked attention: Megatron-Core has windows");
    if (any([](const Architecture& layer) { return layer.qk_norm == QkNorm::full; }))
      lack("a normalization over all heads of q and k: needs a layer specification in Python");
    if (any([](const Architecture& layer) {
          return layer.activation == Activation::geglu || layer.activation == Activation::relu;
        }))
      lack("the activation: Megatron-LM's are gelu, swiglu, squared relu and quick GeGLU");
    bool alike = true;
    for (const LayerDescription& kind : model_.layer_kinds) {
      if (has_attention(kind.architecture))
        alike = alike && kind.heads == own_.heads && kind.key_value_heads == own_.key_value_heads &&
                kind.head_size == own_.head_size;
      if (has_dense_mlp(kind.architecture)) alike = alike && kind.feedforward == dense_feedforward();
    }
    if (!alike) lack("layers of several sizes: a --heterogeneous-layers-config-path file");
  }

  const Request& request_;
  const Transformer& model_;
  LayerDescription own_;
  MegatronWords words_;
  std::vector<std::string> lacks_;
};

}  // namespace

ModelWords megatron_model(const Request& request, bool bridge) {
  return MegatronModel(request, bridge).run();
}

}  // namespace headroom

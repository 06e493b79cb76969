// The model of Megatron-Core's configuration, as NeMo's YAML and Megatron-Bridge's overrides write it.
#include <array>

#include <fmt/format.h>

#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/megatron_model.hpp"

namespace headroom {
namespace {

// Returns layer settings under Megatron-LM's names, with the switches that overrides imply.
std::vector<Written> layer_settings(TreeRun& run) {
  constexpr std::array names{"num_layers",
                             "num_query_groups",
                             "kv_channels",
                             "qk_layernorm",
                             "multi_latent_attention",
                             "q_lora_rank",
                             "kv_lora_rank",
                             "qk_head_dim",
                             "qk_pos_emb_head_dim",
                             "v_head_dim",
                             "window_size",
                             "window_attn_skip_freq",
                             "softmax_type",
                             "attention_backend",
                             "quick_geglu",
                             "activation_func_clamp_value",
                             "num_moe_experts",
                             "num_experts",
                             "num_shared_experts",
                             "tokenizer_type",
                             "tokenizer_model",
                             "moe_layer_freq",
                             "moe_router_topk",
                             "moe_router_dtype",
                             "moe_ffn_hidden_size",
                             "moe_shared_expert_intermediate_size",
                             "moe_latent_size",
                             "moe_router_num_groups",
                             "moe_router_group_topk",
                             "moe_router_score_function",
                             "moe_router_pre_softmax",
                             "moe_router_enable_expert_bias",
                             "moe_router_load_balancing_type"};
  std::vector<Written> settings;
  for (const std::string_view name : names) {
    const Written* const written = run.find(name);
    if (written == nullptr) continue;
    settings.push_back(*written);
    if (written->values.size() > 1) settings.back().values = {'[' + text_of_values(*written) + ']'};
  }
  const auto add = [&](std::string_view name, const Written* from, std::string value) {
    if (from == nullptr) return;
    Written setting = *from;
    setting.name = name;
    setting.values = {std::move(value)};
    settings.push_back(std::move(setting));
  };
  add("group_query_attention", run.find("num_query_groups"), "true");
  if (!run.has("multi_latent_attention")) add("multi_latent_attention", run.find("kv_lora_rank"), "true");
  const Written* const activation = run.find("activation_func");
  if (activation != nullptr && text_of_values(*activation).find("quick_gelu") != std::string::npos)
    add("quick_geglu", run.find("gated_linear_unit"), "true");
  return settings;
}

}  // namespace

void take_core_model(TreeRun& run) {
  RunBuilder& builder = run.builder();
  const auto size = [&](std::string_view path, std::string_view name) {
    if (const auto number = run.count({name})) builder.member(path, *number, run.find(name));
  };
  if (!run.has("hidden_size") || !run.has("num_layers")) return;
  size("hidden", "hidden_size");
  size("heads", "num_attention_heads");
  size("feedforward", "ffn_hidden_size");
  size("max_positions", "max_position_embeddings");
  size("vocabulary_multiple", "make_vocab_size_divisible_by");
  const std::vector<Written> settings = layer_settings(run);
  const MegatronSettings layers(settings);
  const Written* const number = run.find("num_layers");
  if (number == nullptr) return builder.assume("num_layers has no value: give --model");
  const std::int64_t count = run.count("num_layers").value_or(0);
  if (count < 1 || count > most_layers)
    return builder.problem(*number, fmt::format("must be a number from 1 to {}", most_layers));
  read_layers(layers, *number, count, builder);
  const std::int64_t hidden = run.count("hidden_size").value_or(0);
  if (builder.member_at("feedforward") == nullptr) {
    builder.member("feedforward", 4 * hidden, nullptr);
    builder.imply("the MLP is 4 x hidden_size where it is not written");
  }
  if (builder.member_at("max_positions") == nullptr && builder.count("sequence"))
    builder.member("max_positions", *builder.count("sequence"), nullptr);
  builder.member("sequence", builder.count("sequence").value_or(2048), nullptr);
  const std::string activation = lower_case(run.text("activation"));
  const bool gated = activation.find("swiglu") != std::string::npos ||
                     activation.find("geglu") != std::string::npos || run.on("gated_linear_unit") ||
                     run.on("swiglu");
  builder.member("activation",
                 layers.is("quick_geglu")                          ? "geglu"
                 : gated                                           ? "swiglu"
                 : activation.find("squared") != std::string::npos ? "squared_relu"
                                                                   : "gelu",
                 run.find({"activation", "gated_linear_unit", "swiglu"}));
  read_clamp(layers, builder);
  const std::string norm = lower_case(run.text("normalization"));
  builder.member("normalization", norm.starts_with("rms") ? "rms_norm" : "layer_norm",
                 run.find("normalization"));
  const std::string positions = lower_case(run.text("position_embedding_type"));
  builder.member("positions",
                 positions == "rope" || positions == "rotary" || positions == "yarn" ? "rotary"
                 : positions == "none" || positions == "alibi"                       ? "none"
                                                                                     : "learned",
                 run.find("position_embedding_type"));
  if (positions == "yarn") builder.member("scaled_rotary", true, run.find("position_embedding_type"));
  read_attention(layers, builder);
  const Written* const bias = run.find({"bias", "add_bias_linear"});
  const bool disabled = run.on("disable_bias_linear");
  builder.member("linear_bias", !disabled && (bias == nullptr || is_on(*bias)), bias);
  if (run.on("add_qkv_bias")) builder.member("qkv_bias", true, run.find("add_qkv_bias"));
  for (const std::string_view name : {"hidden_dropout", "attention_dropout"}) {
    const Written* const rate = run.find(name);
    const bool zero = rate != nullptr && text_of_values(*rate).find_first_not_of("0.") == std::string::npos;
    builder.member(name, !zero, rate);
  }
  const Written* const shared = run.find({"share_embeddings_and_output_weights"});
  const bool untied = run.on("untie_embeddings_and_output_weights");
  builder.member("tied_embeddings", !untied && (shared == nullptr || is_on(*shared)), shared);
  if (const auto vocabulary = run.count({"vocab_size", "padded_vocab_size", "override_vocab_size"})) {
    builder.member("vocabulary", *vocabulary,
                   run.find({"vocab_size", "padded_vocab_size", "override_vocab_size"}));
  } else if (layers.tells("tokenizer_type")) {
    read_vocabulary(layers, count, builder);
  } else {
    constexpr std::int64_t gpt2 = 50257;
    builder.member("vocabulary", gpt2, nullptr);
    builder.assume("the vocabulary is not written: that of GPT-2 is taken, 50,257 (--set vocabulary=N)");
  }
}

void take_changed_model(const std::string& name, TreeRun& run) {
  RunBuilder& builder = run.builder();
  builder.name_model(name, nullptr);
  const EmbeddedFile* const file = find_embedded("model", name);
  if (file == nullptr) return;
  const Transformer model = parse_model(file->text, std::string(file->path));
  if (!model.layer_kinds.empty()) return;  // the file does not say which kind it changes
  struct Size {
    std::string_view path;
    std::string_view name;
  };
  constexpr std::array<Size, 9> sizes{{{"layers", "num_layers"},
                                       {"hidden", "hidden_size"},
                                       {"feedforward", "ffn_hidden_size"},
                                       {"heads", "num_attention_heads"},
                                       {"key_value_heads", "num_query_groups"},
                                       {"head_size", "kv_channels"},
                                       {"experts/count", "num_moe_experts"},
                                       {"experts/per_token", "moe_router_topk"},
                                       {"experts/feedforward", "moe_ffn_hidden_size"}}};
  for (const Size& size : sizes) {
    if (size.path.find('/') == std::string_view::npos || any_experts(model))
      take_size(run, size.path, {size.name});
  }
}

}  // namespace headroom

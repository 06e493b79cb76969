// The model of Megatron-Core's configuration, as NeMo's YAML and Megatron-Bridge's overrides write it.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/megatron_model.hpp"
#include "io/strict_json.hpp"

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

namespace {

struct CoreSize {
  std::string_view path;
  std::string_view name;
};
constexpr std::array<CoreSize, 15> core_sizes{
    {{"hidden", "hidden_size"},
     {"feedforward", "ffn_hidden_size"},
     {"heads", "num_attention_heads"},
     {"key_value_heads", "num_query_groups"},
     {"head_size", "kv_channels"},
     {"vocabulary", "vocab_size"},
     {"latent_attention/q_rank", "q_lora_rank"},
     {"latent_attention/kv_rank", "kv_lora_rank"},
     {"latent_attention/nope_head_size", "qk_head_dim"},
     {"latent_attention/rope_head_size", "qk_pos_emb_head_dim"},
     {"latent_attention/value_head_size", "v_head_dim"},
     {"experts/count", "num_moe_experts"},
     {"experts/per_token", "moe_router_topk"},
     {"experts/feedforward", "moe_ffn_hidden_size"},
     {"experts/shared_feedforward", "moe_shared_expert_intermediate_size"}}};

// Returns the places of a layer's size in a model file: for all layers, and for each kind with its own.
// Megatron-Core has one value for all layers [core/transformer/transformer_config.py].
std::vector<std::string> places_of(std::string_view path, const Json& file) {
  const std::string first(path.substr(0, path.find('/')));
  const bool of_part = first.size() < path.size();
  std::vector<std::string> places;
  if (!of_part || file.contains(first)) places.emplace_back(path);
  const Json kinds = file.value("layer_kinds", Json::object());
  for (const auto& [kind, members] : kinds.items()) {
    if (members.contains(first)) places.push_back(fmt::format("layer_kinds/{}/{}", kind, path));
  }
  return places;
}

// The name of the model's only kind of layers with experts, or without; empty: it has none or several.
std::string kind_of(const Transformer& model, bool experts) {
  std::string name;
  for (const LayerDescription& kind : model.layer_kinds) {
    if (kind.architecture.experts.has_value() != experts) continue;
    if (!name.empty()) return "";
    name = kind.name;
  }
  return name;
}

// Sets the members of a model with its layers as moe_layer_freq says [core/models/gpt/gpt_layer_specs.py,
// get_gpt_decoder_block_spec].
void place_layers(const Written& frequency, std::int64_t layers, const Json& file, const Transformer& model,
                  RunBuilder& builder) {
  const std::array<std::string, 2> kinds{kind_of(model, false), kind_of(model, true)};
  const std::string text = text_of_values(frequency);
  const auto which = expert_layers(frequency.values.size() > 1 ? '[' + text + ']' : text, layers);
  if (kinds[0].empty() || kinds[1].empty())
    return builder.problem(
        frequency,
        fmt::format("needs one kind of layers with experts and one without; {} has others: give --model FILE",
                    model.name));
  if (!which || std::ssize(*which) != layers)
    return builder.problem(frequency,
                           fmt::format("must be a number of layers or a list of {} times 0 or 1", layers));
  Json runs = Json::array();
  for (const int experts : *which) {
    const std::string& kind = kinds[experts != 0 ? 1 : 0];
    if (runs.empty() || runs.back()["kind"] != kind) runs.push_back({{"kind", kind}, {"count", 0}});
    runs.back()["count"] = runs.back()["count"].get<std::int64_t>() + 1;
  }
  for (const auto& [name, value] : file.items()) {
    if (name != "format" && name != "source" && builder.member_at(name) == nullptr)
      builder.member(name, value, nullptr);
  }
  builder.member("layers", std::move(runs), &frequency);
  builder.imply(fmt::format("the layers are those of {} in another number and order", model.name),
                &frequency);
}

}  // namespace

void take_changed_model(const std::string& name, TreeRun& run) {
  RunBuilder& builder = run.builder();
  const EmbeddedFile* const embedded = find_embedded("model", name);
  if (embedded == nullptr) return builder.name_model(name, nullptr);
  const Transformer model = parse_model(embedded->text, std::string(embedded->path));
  std::vector<Problem> problems;
  const Json file = parse_json(embedded->text, std::string(embedded->path), problems);
  const bool kinds = !model.layer_kinds.empty();
  const Written* const frequency = kinds ? run.find("moe_layer_freq") : nullptr;
  const Written* const number = run.find("num_layers");
  const std::int64_t layers = run.count("num_layers").value_or(model.layers);
  if (number != nullptr && (layers < 1 || layers > most_layers))
    return builder.problem(*number, fmt::format("must be a number from 1 to {}", most_layers));
  if (frequency != nullptr) {
    place_layers(*frequency, layers, file, model, builder);
  } else {
    builder.name_model(name, nullptr);
    if (number != nullptr) builder.member("layers", layers, number);
    if (number != nullptr && kinds && layers != model.layers)
      builder.assume(
          fmt::format("the kinds of the {} layers are those of {} from the first on", layers, name), number);
  }
  for (const CoreSize& size : core_sizes) {
    if (kinds && number == nullptr && frequency == nullptr) {
      if (const Written* const left = run.find(size.name))
        builder.leave_out(
            *left, fmt::format("{} has several kinds of layers: set num_layers too, or use --set {}=N", name,
                               size.path));
      continue;
    }
    for (const std::string& place : places_of(size.path, file)) take_size(run, place, {size.name});
  }
}

}  // namespace headroom

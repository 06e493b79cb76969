// A whole launch of torchtitan: its TOML, and a module that adds the model's sizes to a model of torchtitan's.
#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "headroom/model/layer_kinds.hpp"
#include "interop/launch_out/launches.hpp"
#include "interop/launch_out/script.hpp"

namespace headroom {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Flags as tables of TOML: "--training.seq_len 8192" is seq_len of [training].
std::string toml_of(const std::vector<std::string>& flags,
                    std::map<std::string, std::vector<std::string>> tables) {
  for (const std::string& flag : flags) {
    const std::size_t space = flag.find(' ');
    const std::string path = flag.substr(2, space == std::string::npos ? space : space - 2);
    const std::string value = space == std::string::npos ? "" : flag.substr(space + 1);
    const std::size_t dot = path.rfind('.');
    const std::string section = path.substr(0, dot);
    const std::string key = path.substr(dot + 1);
    const bool text = key == "selective_ac_option";  // a number is text here
    std::string written = value.empty()                                         ? "true"
                          : (is_number(value) && !text) || value.front() == '[' ? value
                                                                                : "\"" + value + "\"";
    if (key == "converters") written = "[\"" + value + "\"]";
    tables[section].push_back(key + " = " + written);
  }
  std::string toml;
  for (const auto& [section, lines] : tables) {
    toml += "\n[" + section + "]\n";
    for (const std::string& line : lines) toml += line + "\n";
  }
  return toml;
}

struct TitanModel {
  std::string name;  // of torchtitan's models; empty: none has these layers
  std::string module;
  std::string lack;
};

// Arguments of models/llama3/model/args.py: the feed-forward width is 8/3 of dim, times a factor, rounded up.
std::string llama_arguments(const Transformer& model) {
  const auto whole = static_cast<std::int64_t>(8 * static_cast<double>(model.hidden) / 3);
  std::string factor;
  if (model.feedforward < whole)
    factor = fmt::format("ffn_dim_multiplier={} / {}, ", model.feedforward - 1, whole);
  if (model.feedforward > whole)
    factor = fmt::format("ffn_dim_multiplier={} / {}, ", model.feedforward, whole);
  return fmt::format(
      "TransformerModelArgs(dim={}, n_layers={}, n_heads={}, n_kv_heads={}, vocab_size={}, {}multiple_of={}, "
      "rope_theta=500000)",
      model.hidden, model.layers, model.heads, model.key_value_heads, padded_vocabulary(model, 1), factor,
      model.feedforward);
}

std::string moe_arguments(const Experts& experts, bool softmax) {
  const std::int64_t shared = experts.feedforward > 0 ? experts.shared_feedforward / experts.feedforward : 0;
  return fmt::format(
      "MoEArgs(num_experts={}, num_shared_experts={}, top_k={}, score_func=\"{}\", route_norm=True, "
      "score_before_experts=False)",
      experts.count, shared, experts.per_token, softmax ? "softmax" : "sigmoid");
}

const LayerDescription* expert_kind(const Transformer& model) {
  for (const LayerDescription& kind : model.layer_kinds) {
    if (kind.architecture.experts) return &kind;
  }
  return nullptr;
}

TitanModel titan_model(const Transformer& model) {
  const LayerDescription* const moe = expert_kind(model);
  const bool kinds_are_dense_first = moe != nullptr && model.layer_runs.size() == 2 &&
                                     !model.layer_kinds[model.layer_runs[0].kind].architecture.experts;
  const Architecture& layer = moe != nullptr ? moe->architecture : model.architecture;
  const bool plain = layer.normalization == Normalization::rms_norm &&
                     layer.activation == Activation::swiglu && layer.positions == Positions::rotary &&
                     !layer.linear_bias && !has_mixer(layer.mixers) && layer.window == 0 &&
                     !layer.clamped_activation && !layer.attention_gate &&
                     layer.norm_position == NormPosition::before && model.mtp_layers == 0;
  const bool alone = model.layer_kinds.empty();
  const std::string add = "[\"headroom\"] = ";
  if (plain && alone && !layer.experts && !layer.qkv_bias && layer.qk_norm == QkNorm::none &&
      !layer.latent_attention && !layer.tied_embeddings && model.head_size * model.heads == model.hidden)
    return {"llama3",
            "from torchtitan.models.llama3 import TransformerModelArgs, llama3_args\n\nllama3_args" + add +
                llama_arguments(model) + "\n",
            {}};
  if (plain && alone && layer.qk_norm == QkNorm::per_head && !layer.latent_attention) {
    std::string experts;
    if (layer.experts)
      experts = fmt::format(", moe_enabled=True, moe_inter_dim={}, moe_args={}", layer.experts->feedforward,
                            moe_arguments(*layer.experts, true));
    return {
        "qwen3",
        fmt::format(
            "from torchtitan.models.moe import MoEArgs\nfrom torchtitan.models.qwen3 import Qwen3ModelArgs, "
            "qwen3_args\n\nqwen3_args{}Qwen3ModelArgs(\n    dim={}, n_layers={}, n_heads={}, n_kv_heads={}, "
            "head_dim={}, hidden_dim={},\n    vocab_size={}, enable_weight_tying={}{},\n)\n",
            add, model.hidden, model.layers, model.heads, model.key_value_heads, model.head_size,
            model.feedforward, padded_vocabulary(model, 1), layer.tied_embeddings ? "True" : "False",
            experts),
        {}};
  }
  if (plain && layer.latent_attention && layer.experts && (alone || kinds_are_dense_first)) {
    const LatentAttention& latent = *layer.latent_attention;
    return {"deepseek_v3",
            fmt::format(
                "from torchtitan.models.deepseek_v3 import DeepSeekV3ModelArgs, deepseekv3_args\nfrom "
                "torchtitan.models.moe import MoEArgs\n\ndeepseekv3_args{}DeepSeekV3ModelArgs(vocab_size={}, "
                "dim={}, inter_dim={}, moe_inter_dim={}, n_layers={}, n_dense_layers={}, n_heads={}, "
                "moe_args={}, "
                "q_lora_rank={}, kv_lora_rank={}, qk_nope_head_dim={}, qk_rope_head_dim={}, v_head_dim={})\n",
                add, padded_vocabulary(model, 1), model.hidden, model.feedforward, layer.experts->feedforward,
                model.layers, alone ? 0 : model.layer_runs[0].count, model.heads,
                moe_arguments(*layer.experts, layer.experts->scores != RouterScores::sigmoid), latent.q_rank,
                latent.kv_rank, latent.nope_head_size, latent.rope_head_size, latent.value_head_size),
            {}};
  }
  return {
      {}, {}, "the model: torchtitan v0.2.2 has llama3, qwen3 and deepseek_v3 layers, which these are not"};
}

}  // namespace

void write_titan(const Request& request, Launch& launch) {
  const TitanModel model = titan_model(request.model);
  if (!model.lack.empty()) launch.lacks.push_back(model.lack);
  std::map<std::string, std::vector<std::string>> tables;
  tables["job"] = {
      "dump_folder = \"./outputs\"",
      fmt::format("description = \"{}\"", request.model.name.empty() ? "model" : request.model.name)};
  // A name that torchtitan has would train another model in silence.
  tables["model"] = {fmt::format("name = \"{}\"", model.name.empty() ? "your-model" : model.name),
                     fmt::format("flavor = \"{}\"", model.name.empty() ? "your-flavor" : "headroom"),
                     "hf_assets_path = \"./tests/assets/tokenizer\""};
  tables["metrics"] = {"log_freq = 1"};
  tables["training"] = {"dataset = \"c4_test\"", "steps = 50"};
  // A weight that steps in the backward pass leaves no gradient whose norm could be clipped.
  if (!request.strategy.step_in_backward) tables["training"].push_back("max_norm = 1.0");
  tables["optimizer"] = {"name = \"AdamW\"", "lr = 1e-4"};
  tables["lr_scheduler"] = {"warmup_steps = 2"};
  tables["checkpoint"] = {"enable = false"};
  if (!model.name.empty()) tables["experimental"] = {"custom_import = \"headroom_model\""};
  const Script script{
      .variables = {{"TORCHTITAN_PATH", "/opt/torchtitan", "a checkout of the release above"},
                    {"TOKENIZER_PATH", "./tests/assets/tokenizer",
                     "a tokenizer's folder, from that checkout on"},
                    {"DATASET", "c4_test", "c4_test is in the checkout"}},
      .arrays = {},
      .program =
          "-m torchtitan.train --job.config_file \"$HERE/headroom.toml\" --model.hf_assets_path "
          "\"$TOKENIZER_PATH\" --training.dataset \"$DATASET\"",
      .setup =
          "HERE=\"$PWD\"\nexport PYTHONPATH=\"$HERE${PYTHONPATH:+:$PYTHONPATH}\"\ncd \"$TORCHTITAN_PATH\"\n",
      .started = {}};
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
  launch.files.push_back(
      {"headroom.toml", file_title(launch, request) + toml_of(launch.flags, std::move(tables))});
  if (!model.name.empty())
    launch.files.push_back(
        {"headroom_model.py", file_title(launch, request) +
                                  "# Adds the model's sizes as a flavor (experimental.custom_import).\n" +
                                  model.module});
}

}  // namespace headroom

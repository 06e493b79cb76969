#include "run_model.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace headroom {
namespace {

// The choices that some layer made, in the order of the first, and runs of layers by their places among these.
template <class Choice>
struct LaidOut {
  std::vector<Choice> kinds;
  std::vector<LayerRun> runs;
};

template <class Choice>
LaidOut<Choice> lay_out(const std::vector<Choice>& layers) {
  LaidOut<Choice> laid;
  for (const Choice& layer : layers) {
    const auto same = std::find(laid.kinds.begin(), laid.kinds.end(), layer);
    const auto kind = static_cast<std::size_t>(same - laid.kinds.begin());
    if (same == laid.kinds.end()) laid.kinds.push_back(layer);
    if (laid.runs.empty() || laid.runs.back().kind != kind) laid.runs.push_back({kind, 0});
    ++laid.runs.back().count;
  }
  return laid;
}

// A kind for each part that some layer is of.
void lay_parts(Transformer& model, const MeasuredRun& run) {
  const LaidOut<HybridLayer> laid = lay_out(run.hybrid_layers);
  const LayerDescription own = own_layer(model);
  for (const HybridLayer kind : laid.kinds) {
    LayerDescription layer = own;
    layer.name = name_of(kind);
    layer.architecture.parts = part_of(kind);
    for_each_mixer([&](const auto& row, auto mixer) {
      if (row.name == name_of(kind)) layer.architecture.mixers.*mixer = run.mixers.*mixer;
    });
    if (kind == HybridLayer::experts) layer.architecture.experts = run.experts;
    model.layer_kinds.push_back(std::move(layer));
  }
  model.layer_runs = laid.runs;
}

// Of a layer, what others of the model may have otherwise.
struct LayerChoice {
  bool sparse = false;
  bool windowed = false;
  friend bool operator==(const LayerChoice&, const LayerChoice&) = default;
};

LayerChoice choice_at(const MeasuredRun& run, std::int64_t place) {
  const std::int64_t after_dense = place - run.dense_layers + 1;
  const bool full = run.full_attention_every > 0 && (place + 1) % run.full_attention_every == 0;
  return {.sparse = run.experts && after_dense > 0 && after_dense % run.expert_layer_every == 0,
          .windowed = run.window > 0 && !full};
}

LayerDescription layer_of(const MeasuredRun& run, const Transformer& model, const LayerChoice& choice) {
  LayerDescription layer = own_layer(model);
  layer.name = choice.sparse ? "moe" : "dense";
  if (choice.sparse) layer.architecture.experts = run.experts;
  if (choice.windowed) {
    layer.name += "_window";
    layer.architecture.window = run.window;
  }
  return layer;
}

// Layers with experts among dense ones, and such that see a window among those that see all.
void lay_kinds(Transformer& model, const MeasuredRun& run) {
  std::vector<LayerChoice> layers;
  layers.reserve(static_cast<std::size_t>(model.layers));
  for (std::int64_t place = 0; place < model.layers; ++place) layers.push_back(choice_at(run, place));
  const LaidOut<LayerChoice> laid = lay_out(layers);
  if (laid.kinds.size() == 1) {
    model.architecture = layer_of(run, model, laid.kinds.front()).architecture;
    return;
  }
  const Transformer common = model;
  for (const LayerChoice& choice : laid.kinds) model.layer_kinds.push_back(layer_of(run, common, choice));
  model.layer_runs = laid.runs;
}

Transformer described_model(const MeasuredRun& run, const RunSettings& settings) {
  Transformer model{.name = run.model_name.empty() ? run.name : run.model_name,
                    .source = run.source,
                    .hidden = run.hidden,
                    .feedforward = run.feedforward.value_or(4 * run.hidden),
                    .heads = run.heads,
                    .key_value_heads = run.key_value_heads.value_or(run.heads),
                    .head_size = run.head_size.value_or(run.hidden / run.heads),
                    .layers = run.layers,
                    .vocabulary = run.vocabulary ? *run.vocabulary : settings.vocabulary.value(),
                    .vocabulary_multiple = 128,  // Megatron-LM's default
                    .sequence = run.sequence,
                    .max_positions = run.sequence};
  model.mtp_layers = run.mtp_layers;
  Architecture& architecture = model.architecture;
  // Those that are published are relatives of Llama where they are gated, and hybrid ones of Nemotron-H, whose attention has no
  // positions [Megatron-LM, examples/post_training/modelopt/conf/nvidia/].
  const bool hybrid = !run.hybrid_layers.empty();
  if (run.gated || hybrid) {
    architecture.activation = hybrid ? Activation::squared_relu : Activation::swiglu;
    architecture.normalization = Normalization::rms_norm;
    architecture.positions = hybrid ? Positions::none : Positions::rotary;
    architecture.linear_bias = architecture.qkv_bias = false;
    architecture.hidden_dropout = architecture.attention_dropout = false;
    architecture.tied_embeddings = false;
  }
  architecture.attention_sinks = run.attention_sinks;
  architecture.clamped_activation =
      is_gated(architecture.activation) && run.clamped_activation.value_or(false);
  architecture.scaled_rotary =
      architecture.positions == Positions::rotary && run.scaled_rotary.value_or(false);
  if (run.qk_norm) architecture.qk_norm = QkNorm::per_head;
  if (const auto& latent = run.latent_attention) {
    architecture.latent_attention = latent;
    architecture.positions = Positions::rotary;
    architecture.qkv_bias = false;
    model.key_value_heads = model.heads;  // it makes k and v of every head
    model.head_size = latent->nope_head_size + latent->rope_head_size;
  }
  return model;
}

}  // namespace

Transformer model_of(const MeasuredRun& run, const RunSettings& settings) {
  Transformer model = run.model ? *run.model : described_model(run, settings);
  const auto set = [](auto& choice, const auto& stated) { choice = stated.value_or(choice); };
  Architecture& architecture = model.architecture;
  if (run.flash_attention)
    architecture.kernels.attention = *run.flash_attention ? AttentionKernel::flash : AttentionKernel::unfused;
  set(architecture.normalization, run.normalization);
  set(architecture.linear_bias, run.linear_bias);
  set(architecture.qkv_bias, run.qkv_bias);
  set(architecture.positions, settings.positions);
  set(architecture.tied_embeddings, settings.tied_embeddings);
  if (run.model) return model;
  if (run.hybrid_layers.empty()) {
    lay_kinds(model, run);
  } else {
    lay_parts(model, run);
  }
  return model;
}

}  // namespace headroom

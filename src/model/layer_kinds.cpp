#include "headroom/model/layer_kinds.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/model/precision_ops.hpp"

namespace headroom {
namespace {

// Returns the sizes that differ from the model's own.
KindSizes sizes_of(const LayerDescription& layer, const Transformer& model) {
  KindSizes sizes;
  const auto add = [&](Symbol letter, std::int64_t size, std::int64_t of_model) {
    if (size != of_model) sizes.push_back({letter, size});
  };
  add(Symbol::feedforward, layer.feedforward, model.feedforward);
  add(Symbol::heads, layer.heads, model.heads);
  add(Symbol::key_value_heads, layer.key_value_heads, model.key_value_heads);
  add(Symbol::head_size, layer.head_size, model.head_size);
  if (layer.architecture.window > 0) {
    add(Symbol::keys_met, layer.architecture.window, model.architecture.window);
  }
  if (layer.architecture.attention_chunk > 0) {
    add(Symbol::keys_in_chunk, layer.architecture.attention_chunk, model.architecture.attention_chunk);
  }
  if (const auto& latent = layer.architecture.latent_attention) {
    const LatentAttention own = model.architecture.latent_attention.value_or(LatentAttention{});
    add(Symbol::query_rank, latent->q_rank, own.q_rank);
    add(Symbol::key_value_rank, latent->kv_rank, own.kv_rank);
    add(Symbol::plain_head_size, latent->nope_head_size, own.nope_head_size);
    add(Symbol::rotary_head_size, latent->rope_head_size, own.rope_head_size);
    add(Symbol::value_head_size, latent->value_head_size, own.value_head_size);
  }
  with_mixer(layer.architecture.mixers, [&](const auto& row, const auto& mixer) {
    for (const auto& it : row.sizes) {
      if (it.letter) add(*it.letter, mixer.*it.member, mixer_size(model.architecture.mixers, *it.letter));
    }
  });
  if (const auto& experts = layer.architecture.experts) {
    const Experts own = model.architecture.experts.value_or(Experts{});
    add(Symbol::experts, experts->count, own.count);
    add(Symbol::experts_per_token, experts->per_token, own.per_token);
    add(Symbol::expert_groups, experts->groups, own.groups);
    add(Symbol::expert_groups_per_token, groups_per_token(*experts), groups_per_token(own));
    add(Symbol::expert_feedforward, experts->feedforward, own.feedforward);
    add(Symbol::shared_feedforward, experts->shared_feedforward, own.shared_feedforward);
    add(Symbol::expert_latent, experts->latent, own.latent);
  }
  return sizes;
}

bool alike(LayerDescription x, const LayerDescription& y) {
  x.name = y.name;
  return x == y;
}

// Returns the runs of a model. Each names the first of identical kinds, and neighbouring runs of one kind are
// merged.
std::vector<LayerRun> distinct_runs(const std::vector<LayerDescription>& kinds,
                                    const std::vector<LayerRun>& runs) {
  std::vector<LayerRun> result;
  for (const LayerRun& run : runs) {
    const auto first = std::find_if(kinds.begin(), kinds.end(), [&](const LayerDescription& other) {
      return alike(other, kinds[run.kind]);
    });
    const auto kind = static_cast<std::size_t>(first - kinds.begin());
    if (!result.empty() && result.back().kind == kind) {
      result.back().count += run.count;
    } else {
      result.push_back({kind, run.count});
    }
  }
  return result;
}

OpTable table_of(LayerDescription layer, const LayerChoices& choices) {
  layer.architecture = with_kernels(layer.architecture, choices.kernels);
  const bool narrow = is_narrow(choices.precision);
  const NarrowParts parts = narrow ? choices.kernels.fp8_parts : NarrowParts{};
  if (parts.activation_input) {
    layer.architecture.kernels.activation_input = Dtype::fp8_blockwise;
  } else if (choices.scope.activation_input) {
    layer.architecture.kernels.activation_input = Dtype::fp8;
  }
  OpTable table = layer_in(layer_ops(layer, choices.micro_batch, choices.dispatcher,
                                     choices.pads_rows && narrow, choices.pads_to_capacity),
                           choices.precision, choices.scope);
  if (parts.context) table = with_stored_context(std::move(table));
  if (parts.dispatch) table = with_narrow_dispatch(std::move(table));
  return table;
}

// Consecutive layers of one kind, all of them at 16 bits or none.
struct TypedRun {
  std::size_t kind = 0;
  bool at_half = false;
  std::int64_t count = 0;
};

std::vector<TypedRun> typed_runs(const std::vector<LayerRun>& runs, const LayerChoices& choices) {
  const PrecisionScope scope = is_narrow(choices.precision) ? choices.scope : PrecisionScope{};
  std::int64_t layers = 0;
  for (const LayerRun& run : runs) layers += run.count;
  const std::int64_t start = std::clamp<std::int64_t>(scope.bf16_layers_at_start, 0, layers);
  const std::int64_t end = layers - std::clamp<std::int64_t>(scope.bf16_layers_at_end, 0, layers - start);
  std::vector<TypedRun> typed;
  typed.reserve(runs.size() + 2);
  std::int64_t place = 0;
  for (const LayerRun& run : runs) {
    for (std::int64_t left = run.count; left > 0;) {
      const std::int64_t next = place < start ? start : place < end ? end : layers;
      const std::int64_t count = std::min(left, next - place);
      typed.push_back({.kind = run.kind, .at_half = place < start || place >= end, .count = count});
      place += count;
      left -= count;
    }
  }
  return typed;
}

OpTable head_in(const OpTable& head, const LayerChoices& choices) {
  return choices.scope.output_layer ? with_narrow_output_layer(head, choices.precision) : head;
}

// Returns the layer of multi-token prediction: one like the model's last. If layers have one part each, it
// has attention and an MLP like the last layers that have them [Megatron-LM, --hybrid-layer-pattern, "/*E"
// for each depth].
LayerDescription predicting_layer(const std::vector<LayerDescription>& kinds,
                                  const std::vector<LayerRun>& runs) {
  LayerDescription layer = kinds[runs.back().kind];
  if (layer.architecture.parts == LayerParts::both) return layer;
  const auto last_with = [&](auto rule) {
    return std::find_if(runs.rbegin(), runs.rend(),
                        [&](const LayerRun& run) { return rule(kinds[run.kind].architecture); });
  };
  const auto attends = last_with(has_attention);
  const auto feeds = last_with([](const Architecture& of) { return of.parts != LayerParts::mixer; });
  if (attends == runs.rend() || feeds == runs.rend()) return layer;
  layer = kinds[attends->kind];
  const LayerDescription& mlp = kinds[feeds->kind];
  layer.feedforward = mlp.feedforward;
  layer.architecture.activation = mlp.architecture.activation;
  layer.architecture.experts = mlp.architecture.experts;
  layer.architecture.parts = LayerParts::both;
  return layer;
}

// Adds all kinds of multi-token prediction, with a layer like `last`.
void add_prediction(ModelLayers& layers, const LayerDescription& last, const Transformer& model,
                    LayerChoices choices) {
  if (choices.scope.bf16_modules.contains(PrecisionModule::mtp)) choices.precision = Precision::bf16;
  const Architecture architecture = with_kernels(model.architecture, choices.kernels);
  const auto add = [&](std::string name, const OpTable& ops) {
    layers.kinds.push_back({.name = std::move(name),
                            .position = KindPosition::last,
                            .count = Monomial(model.mtp_layers),
                            .ops = ops});
  };
  layers.predicts = true;
  add("mtp_embedding", prediction_embedding_ops(architecture, choices.vocabulary));
  add("mtp_input", with_precision(prediction_input_ops(architecture), choices.precision));
  add("mtp_layer", table_of(last, choices));
  layers.kinds.back().sizes = sizes_of(last, model);
  layers.kinds.back().predicts = true;
  add("mtp_head", head_in(prediction_head_ops(architecture, choices.vocabulary), choices));
}

}  // namespace

ModelLayers layers_of(const Transformer& model, const LayerChoices& choices) {
  const Architecture architecture = with_kernels(model.architecture, choices.kernels);
  ModelLayers layers{.tied_embeddings = architecture.tied_embeddings,
                     .boundary = architecture.kernels.residual_dtype};
  std::vector<LayerDescription> described = model.layer_kinds;
  if (described.empty()) described.push_back(own_layer(model));
  const std::vector<LayerRun> runs = model.layer_runs.empty() ? std::vector<LayerRun>{{0, model.layers}}
                                                              : distinct_runs(described, model.layer_runs);
  const std::vector<TypedRun> typed = typed_runs(runs, choices);
  std::vector<TypedRun> order;  // a run for each kind, as the model comes to them, with all of its layers
  const auto place_of = [&](const TypedRun& run) {
    return std::find_if(order.begin(), order.end(), [&](const TypedRun& other) {
      return other.kind == run.kind && other.at_half == run.at_half;
    });
  };
  for (const TypedRun& run : typed) {
    const auto known = place_of(run);
    if (known == order.end()) {
      order.push_back(run);
    } else {
      known->count += run.count;
    }
  }
  const bool all_alike = order.size() == 1;
  LayerChoices at_half = choices;
  at_half.precision = Precision::bf16;
  layers.kinds.reserve(order.size() + most_end_kinds);
  for (const TypedRun& run : order) {
    const LayerDescription& layer = described[run.kind];
    const std::string name = all_alike || layer.name.empty() ? "layer" : layer.name;
    layers.kinds.push_back({.name = run.at_half ? name + "_bf16" : name,
                            .count = all_alike ? Monomial(symbols::L) : Monomial(run.count),
                            .ops = table_of(layer, run.at_half ? at_half : choices),
                            .sizes = sizes_of(layer, model),
                            .compiled = choices.kernels.compiled_layers,
                            .described_as = run.at_half ? name : std::string()});
  }
  layers.kinds.push_back({.name = "embedding",
                          .position = KindPosition::first,
                          .ops = embedding_ops(architecture, choices.vocabulary)});
  if (model.mtp_layers > 0) add_prediction(layers, predicting_layer(described, runs), model, choices);
  layers.kinds.push_back({.name = "head",
                          .position = KindPosition::last,
                          .ops = head_in(head_ops(architecture, choices.vocabulary), choices)});
  for (LayerKind& kind : layers.kinds) kind.fp32_weights = architecture.kernels.weight_copies;
  layers.runs.push_back({order.size(), 1});
  for (const TypedRun& run : typed) {
    layers.runs.push_back({static_cast<std::size_t>(place_of(run) - order.begin()), run.count});
  }
  for (std::size_t kind = order.size() + 1; kind + 1 < layers.kinds.size(); ++kind) {
    layers.runs.push_back({kind, model.mtp_layers});
  }
  layers.runs.push_back({layers.kinds.size() - 1, 1});
  return layers;
}

namespace {

// Repetition at the end of a sequence: its length, and the start of its first occurrence.
struct Repeated {
  std::size_t first = 0;
  std::size_t length = 0;
};

// Returns the sequence with the least sum of start and length that occurs at least twice at the end, or else
// the whole sequence.
Repeated repeated_end(const std::vector<std::size_t>& kinds) {
  Repeated best{.first = 0, .length = kinds.size()};
  for (std::size_t length = 1; 2 * length <= kinds.size() && length < best.first + best.length; ++length) {
    std::size_t first = kinds.size() - length;
    while (first > 0 && kinds[first - 1] == kinds[first - 1 + length]) --first;
    if (kinds.size() - first < 2 * length || first + length >= best.first + best.length) continue;
    best = {.first = first, .length = length};
  }
  return best;
}

}  // namespace

Transformer with_layers(Transformer model, std::int64_t layers) {
  EXPECTS(layers >= 1);
  model.layers = layers;
  if (model.layer_runs.empty()) return model;
  std::vector<std::size_t> kinds;  // of each layer
  for (const LayerRun& run : model.layer_runs) kinds.insert(kinds.end(), index(run.count), run.kind);
  const auto [first, length] = repeated_end(kinds);
  const std::vector<LayerDescription> described = std::move(model.layer_kinds);
  std::vector<std::optional<std::size_t>> place(described.size());
  model.layer_kinds.clear();
  model.layer_runs.clear();
  for (std::size_t i = 0; i < index(layers); ++i) {
    const std::size_t kind = kinds[i < kinds.size() ? i : first + (i - first) % length];
    if (!place[kind]) {
      place[kind] = model.layer_kinds.size();
      model.layer_kinds.push_back(described[kind]);
    }
    if (!model.layer_runs.empty() && model.layer_runs.back().kind == *place[kind]) {
      ++model.layer_runs.back().count;
    } else {
      model.layer_runs.push_back({*place[kind], 1});
    }
  }
  return model;
}

std::int64_t layer_count(const ModelLayers& layers) {
  std::int64_t count = 0;
  for (const LayerRun& run : layers.runs) {
    if (layers.kinds[run.kind].position == KindPosition::layer) count += run.count;
  }
  return count;
}

std::size_t layer_kind_count(const ModelLayers& layers) {
  return static_cast<std::size_t>(
      std::count_if(layers.kinds.begin(), layers.kinds.end(),
                    [](const LayerKind& kind) { return kind.position == KindPosition::layer; }));
}

KindCounts counts_of(const ModelLayers& layers) {
  KindCounts counts;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) counts.push_back(0);
  for (const LayerRun& run : layers.runs) counts[run.kind] += run.count;
  return counts;
}

}  // namespace headroom

// What layers recompute, in words: of the only kind of layer its ops, of several kinds each kind's.
#pragma once

#include <string>

#include "headroom/search/kind_choices.hpp"

namespace headroom {

// "scores softmax"
inline std::string op_names(const LayerChoice& choice, const LayerKind& kind) {
  std::string text;
  for (std::size_t i = 0; i < kind.ops.ops().size(); ++i) {
    if (choice.ops.contains(i)) text += (text.empty() ? "" : " ") + std::string(kind.ops.ops()[i].name);
  }
  return text;
}

inline std::string set_text(const LayerChoice& choice, const LayerKind& kind) {
  if (choice.ops == 0) return "nothing";
  return choice.ops == every_op(kind.ops) ? "the whole layer" : op_names(choice, kind);
}

// Returns "dense: scores softmax; wide: the whole layer". Kinds that recompute nothing are omitted; if all
// kinds recompute the same, it is stated once.
inline std::string set_text(const KindChoices& choices, const ModelLayers& layers) {
  const std::string first = set_text(choices.front(), layers.kinds.front());
  bool alike = true;
  std::string text;
  for (std::size_t kind = 0; kind < choices.size(); ++kind) {
    const LayerKind& of = layers.kinds[kind];
    const std::string set = set_text(choices[kind], of);
    alike = alike && set == first;
    if (choices[kind].ops != 0) text += (text.empty() ? "" : "; ") + of.name + ": " + set;
  }
  return alike ? first : text;
}

// A figure of a layer that recomputes; of several kinds the mean over the model's layers.
template <class Of>
double of_a_layer(const KindChoices& choices, const ModelLayers& layers, Of of) {
  if (choices.size() == 1) return of(choices.front());
  const KindCounts counts = counts_of(layers);
  double sum = 0;
  for (std::size_t kind = 0; kind < choices.size(); ++kind) {
    sum += static_cast<double>(counts[kind]) * of(choices[kind]);
  }
  return sum / static_cast<double>(layer_count(layers));
}
inline Bytes saved_by_a_layer(const KindChoices& choices, const ModelLayers& layers) {
  return Bytes(of_a_layer(choices, layers, [](const LayerChoice& one) { return one.bytes.kept.count(); }));
}
inline Bytes recomputed_by_a_layer(const KindChoices& choices, const ModelLayers& layers) {
  return Bytes(
      of_a_layer(choices, layers, [](const LayerChoice& one) { return one.bytes.recomputed.count(); }));
}
inline Seconds recompute_of_a_layer(const KindChoices& choices, const ModelLayers& layers) {
  return Seconds(
      of_a_layer(choices, layers, [](const LayerChoice& one) { return device_time(one.recompute).count(); }));
}

}  // namespace headroom

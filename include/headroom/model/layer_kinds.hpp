// A model as a list: the embedding, runs of identical layers, multi-token prediction, and the head. Each kind
// has an op table. Memory, time, parameters, FLOPs and explanations are sums over kinds, weighted by the
// number of each in a virtual stage or a model.
//
// To add a kind of layer, add its rows (a table beside layer_ops.hpp), its sizes, and its runs in
// layers_of().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headroom/core/fixed_vector.hpp"
#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/model/precision.hpp"
#include "headroom/model/prediction_ops.hpp"

namespace headroom {

// Place of a kind: among the layers that the pipeline divides, in the first virtual stage, or in the last.
enum class KindPosition : std::uint8_t { layer, first, last };

// A letter whose value in the layers of a kind differs from the model's: a feed-forward width or a number of
// heads, for example. For keys_met and keys_in_chunk, `size` is the window or chunk that determines them.
struct KindSize {
  Symbol letter = Symbol::feedforward;
  std::int64_t size = 0;
  friend bool operator==(const KindSize&, const KindSize&) = default;
};
using KindSizes = FixedVector<KindSize, 20>;

struct LayerKind {
  std::string name;
  KindPosition position = KindPosition::layer;
  Monomial count =
      1;  // of the model: L where all layers are of one kind, so that expressions are the paper's
  OpTable ops;
  KindSizes sizes = {};
  bool predicts =
      false;  // a layer of multi-token prediction: it stands with an end, and is recomputed as layers are
  bool compiled = false;          // StackKernels::compiled_layers
  bool fp32_weights = false;      // trained weights are FP32, and so are their gradients
  std::string described_as = {};  // of layers at 16 bits among others: the kind that they are of in the model
};

// Returns whether recomputation applies to the kind.
constexpr bool is_layer(const LayerKind& kind) {
  return kind.position == KindPosition::layer || kind.predicts;
}

// Returns the name of an op that tells it from those of other kinds: "wide.mlp_up".
inline std::string qualified_name(const LayerKind& kind, std::string_view op) {
  return kind.name + "." + std::string(op);
}

// Largest number of kinds in a model, its two ends included. Counts by kind have a place for each, so that a
// search allocates no memory for them.
inline constexpr std::size_t most_kinds = 16;

// Largest number of kinds that are not layers of a list: embedding, head, and four of multi-token prediction.
inline constexpr std::size_t most_end_kinds = 6;

// Number of layers of each kind, in the order of ModelLayers::kinds.
using KindCounts = FixedVector<std::int64_t, most_kinds>;

// Returns the sum of two counts. Expects both to count the same kinds.
constexpr KindCounts operator+(KindCounts x, const KindCounts& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return x;
}

struct ModelLayers {
  std::vector<LayerKind> kinds;  // layers before ends: sums run in this order
  std::vector<LayerRun> runs;    // in the order of the model, ends included
  bool tied_embeddings = false;
  bool predicts = false;         // has multi-token prediction
  Dtype boundary = Dtype::half;  // of the residual stream between layers
};

// Choices other than the model that determine its op tables. The rest of a strategy and of a training stack
// either divides the tables or does not affect them.
struct LayerChoices {
  std::int64_t micro_batch = 2;  // sequences; of one, some rows do nothing (layer_ops.hpp)
  Precision precision = Precision::bf16;
  PrecisionScope scope = {};
  Dispatcher dispatcher = Dispatcher::alltoall;
  bool pads_rows = true;  // of experts by copying them, where their products are of fewer than 16 bits
  bool pads_to_capacity = false;       // rows of experts before they are sent
  StackKernels kernels = {};           // of a model that states none
  VocabularyParallel vocabulary = {};  // of more than one tensor-parallel rank
  friend auto operator<=>(const LayerChoices&, const LayerChoices&) = default;
};

// Returns the kinds and runs of the model. Identical descriptions become one kind, named after the first of
// them. Layers that stay at 16 bits are kinds of their own: "moe_bf16" for "moe".
ModelLayers layers_of(const Transformer& model, const LayerChoices& choices = {});

// Returns the model with `layers` layers, fewer or more. If there are several kinds, layers are taken in the
// model's order. Beyond the last layer, a sequence of kinds that occurs at least twice in a row at the end is
// repeated. Of several such sequences, the one that takes the shortest description of the model is used. For
// 3 dense layers and 58 wide ones, wide layers are repeated; for alternating local and global layers, the
// pair is. Without such a sequence, the whole model is repeated. Kinds without a layer are removed.
Transformer with_layers(Transformer model, std::int64_t layers);

// Returns the number of layers that a pipeline divides.
std::int64_t layer_count(const ModelLayers& layers);

// Returns the number of kinds of layers. They precede the ends in `kinds`.
std::size_t layer_kind_count(const ModelLayers& layers);

// Returns the number of layers of each kind in the model.
KindCounts counts_of(const ModelLayers& layers);

template <>
inline constexpr std::array<Spelling<KindPosition>, 3> spellings<KindPosition>{{
    {KindPosition::layer, "layer"},
    {KindPosition::first, "first"},
    {KindPosition::last, "last"},
}};

}  // namespace headroom

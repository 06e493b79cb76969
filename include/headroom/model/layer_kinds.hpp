// A model as a list: the embedding, runs of layers that are alike, multi-token prediction, the head. A kind has an op table; memory, time,
// parameters, FLOPs and explanations are sums over kinds, weighted by how many of each a virtual stage or a model has.
//
// A kind of layer joins by its rows (a table beside layer_ops.hpp), by its sizes, and by its runs in layers_of().
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

// Where a kind stands: among the layers that a pipeline divides, with the first of its virtual stages, or with the
// last.
enum class KindPosition : std::uint8_t { layer, first, last };

// A letter that stands for another number in the layers of a kind than in the model: its own feed-forward width, its
// own heads. Of keys_met and keys_in_chunk, the size is the window or chunk they follow from.
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
  std::string described_as = {};  // of layers at 16 bits among others: the kind that they are of in the model
};

// Whether recomputation is of it.
constexpr bool is_layer(const LayerKind& kind) {
  return kind.position == KindPosition::layer || kind.predicts;
}

// Of an op among those of several kinds: "wide.mlp_up".
inline std::string qualified_name(const LayerKind& kind, std::string_view op) {
  return kind.name + "." + std::string(op);
}

// Most kinds of a model, its two ends among them. Counts by kind have a place for each, so that a search allocates
// nothing for them.
inline constexpr std::size_t most_kinds = 16;

// Of them, those that are no layers of a list: embedding and head, and four of multi-token prediction.
inline constexpr std::size_t most_end_kinds = 6;

// How many of each kind, in the order of ModelLayers::kinds.
using KindCounts = FixedVector<std::int64_t, most_kinds>;

// Of both together, of the same kinds.
constexpr KindCounts operator+(KindCounts x, const KindCounts& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return x;
}

struct ModelLayers {
  std::vector<LayerKind> kinds;  // layers before ends: sums run in this order
  std::vector<LayerRun> runs;    // in the order of the model, ends included
  bool tied_embeddings = false;
  bool predicts = false;         // more than one token ahead
  Dtype boundary = Dtype::half;  // of what one layer gives the next
};

// What the op tables of a model depend on beside it: the rest of a strategy, and a training stack, divide them or play no part.
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

// Kinds that are described alike are one kind, named after the first of them. Layers that stay at 16 bits are kinds of their own:
// "moe_bf16" of "moe".
ModelLayers layers_of(const Transformer& model, const LayerChoices& choices = {});

// The model with so many layers, fewer or more. Of several kinds, layers are taken in the order of the model, and beyond
// its last one they go on as they ended: a sequence of kinds that came at least twice in a row at the end is repeated, the
// one by which least of the model has to be said (3 dense layers and 58 wide ones: wide ones; local and global ones in
// turn: in turn), and without one the whole model. Kinds that no layer is of any more are left out.
Transformer with_layers(Transformer model, std::int64_t layers);

// What a pipeline divides.
std::int64_t layer_count(const ModelLayers& layers);

// Kinds of layers, which stand before the ends.
std::size_t layer_kind_count(const ModelLayers& layers);

// How many of each kind the model has.
KindCounts counts_of(const ModelLayers& layers);

template <>
inline constexpr std::array<Spelling<KindPosition>, 3> spellings<KindPosition>{{
    {KindPosition::layer, "layer"},
    {KindPosition::first, "first"},
    {KindPosition::last, "last"},
}};

}  // namespace headroom

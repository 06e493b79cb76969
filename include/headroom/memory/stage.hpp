// What one microbatch leaves on one rank when it passes through one virtual stage: layers under a recomputation
// policy, the embedding before the first, the head after the last, and the output that was sent on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Which pass through an op: its forward pass, the one that makes again what was dropped, or its backward pass.
enum class OpPass : std::uint8_t { forward, recomputation, backward };

// An op of a kind of layer, both as indices (ModelLayers::kinds, OpTable::ops()), or none.
struct OpPlace {
  int kind = nowhere;
  int op = nowhere;
  OpPass pass = OpPass::backward;
  friend bool operator==(const OpPlace&, const OpPlace&) = default;
};

// What a backward pass through the ops of a layer, or of an end of the model, adds at its worst moment to what forward
// passes left (memory/backward.hpp); or a recomputation, or the forward pass before it, which has as many others alive
// (memory/forward.hpp).
struct BackwardPeak {
  OpPlace during;          // the op under way then; none: the training stack counts no such moment
  Bytes freed;             // of what the forward pass left, or will have left
  Bytes recompute;         // that the recomputation holds still
  Bytes gradients;         // of activations
  Bytes logits;            // gradients of the logits, in the precision of the output layer
  Bytes gathered;          // sequence shards of all ranks, put together
  Bytes weight_gradients;  // not yet added to their sum or reduced to shards, or dummies of those that are
  Bytes dequantized;       // weights that an op makes BF16 for its products
  Bytes fetched;           // of what waited on the host, what is not freed yet
  Bytes forward_values;    // that a forward pass makes and nothing keeps
  friend bool operator==(const BackwardPeak&, const BackwardPeak&) = default;
};

constexpr Bytes total(const BackwardPeak& peak) {
  return peak.recompute + peak.gradients + peak.logits + peak.gathered + peak.weight_gradients +
         peak.dequantized + peak.fetched + peak.forward_values - peak.freed;
}

// The worst moment of a backward pass and its recomputation, and that of the forward pass where it takes more; none where it does
// not, since what comes from the host and what is reduced beside a pass is a backward pass's alone.
struct PassPeaks {
  BackwardPeak backward;
  BackwardPeak forward;
  friend bool operator==(const PassPeaks&, const PassPeaks&) = default;
};

// Of weights that data-parallel ranks divide, what a rank has whole at a moment of a backward pass (memory/units.hpp).
struct UnitBytes {
  Bytes gathered;   // weights
  Bytes gradients;  // beside BackwardPeak::weight_gradients
  friend bool operator==(const UnitBytes&, const UnitBytes&) = default;
};

// Of a run of layers, in the order of the model: what the first has beside it, the last, and those between.
struct RunUnits {
  UnitBytes first;
  UnitBytes inner;
  UnitBytes last;
  friend bool operator==(const RunUnits&, const RunUnits&) = default;
};

// Consecutive layers, or consecutive checkpoints of several layers, that are kept alike.
struct CheckpointRun {
  std::int64_t count = 0;
  Bytes kept;        // by each, from forward to backward
  Bytes recomputed;  // made again when the backward pass reaches it: its working set
  Bytes deferred;    // until a pass for weights of its own, where there is one
  Bytes on_host;     // of each, from forward to backward
  PassPeaks peaks;
  RunUnits units;
  friend bool operator==(const CheckpointRun&, const CheckpointRun&) = default;
};

struct StageActivations {
  std::vector<CheckpointRun> layers;  // in the order of the model
  Bytes embedding;                    // on the first stage: all that stands before the layers
  Bytes head;    // on the last stage: all that stands after them (final normalization, output layer, loss)
  Bytes output;  // the sent output, unless it is deallocated
  // Of embedding and head, until a pass for weights of its own, where there is one.
  Bytes embedding_deferred;
  Bytes head_deferred;
  PassPeaks embedding_peaks;
  PassPeaks head_peaks;
  UnitBytes embedding_units;
  UnitBytes head_units;
  friend bool operator==(const StageActivations&, const StageActivations&) = default;
};

// Bytes a rank keeps for one layer under a policy, and those that its recomputation makes again.
struct LayerActivations {
  Bytes kept;
  Bytes recomputed;
  Bytes
      on_host;  // what waits there for the backward pass, and is not among what is kept (memory/offloaded.hpp)
  PassPeaks peaks;
  friend bool operator==(const LayerActivations&, const LayerActivations&) = default;
};

// Of the model's first kind.
LayerActivations layer_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, const Recomputation& recompute, Detail detail);

// One layer of a kind, or what stands at an end of the model, which nothing recomputes but layers of multi-token prediction.
struct KindActivations {
  KindPosition position = KindPosition::layer;
  LayerActivations plain;       // where it is not recomputed
  LayerActivations recomputed;  // where it is
  friend bool operator==(const KindActivations&, const KindActivations&) = default;
};

// The parts of a model, each counted once: what virtual stages are put together from. Depends on t, b, sequence
// parallelism and the recomputation policy, and not on how the layers are divided.
struct ModelActivations {
  std::vector<KindActivations> kinds;  // in the order of ModelLayers::kinds
  Bytes output;                        // a stage's sent output, unless it is deallocated
  friend bool operator==(const ModelActivations&, const ModelActivations&) = default;
};

// The same in symbols, for all t, b and s that shard alike.
struct KindActivationExprs {
  KindPosition position = KindPosition::layer;
  KindSizes sizes;
  Expr plain_kept;
  Expr plain_recomputed;
  Expr kept;
  Expr recomputed;
};
struct ModelActivationExprs {
  std::vector<KindActivationExprs> kinds;
  Expr output;
};

ModelActivationExprs model_activation_exprs(const ModelLayers& layers, const Sharding& sharding,
                                            const Strategy& strategy, Detail detail);
ModelActivations evaluate(const ModelActivationExprs& exprs, const Bindings& letters);

ModelActivations model_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, Detail detail);

Bytes layers_kept(const StageActivations& stage);
Bytes kept(const StageActivations& stage);

StageActivations stage_activations(const ModelActivations& parts, const StagePlace& place,
                                   const Recomputation& recompute);
// The same into a value that is there, since a search asks for many and each new one has its room cleared.
void set_stage_activations(StageActivations& stage, const ModelActivations& parts, const StagePlace& place,
                           const Recomputation& recompute);
// Of the ends and the output alone, without layers, where nothing is recomputed at the ends.
StageActivations end_activations(const ModelActivations& parts, const StagePlace& place);

// Every virtual stage of the model, in order: p m of them. With what they hold for weights, where those have passes
// of their own.
std::vector<StageActivations> stage_activations(const ModelLayers& layers, const Sharding& sharding,
                                                const Bindings& letters, const Strategy& strategy,
                                                const Workload& workload, Detail detail,
                                                const Software& software = {});
std::vector<StageActivations> stage_activations(const Transformer& model, const Strategy& strategy,
                                                const Workload& workload, Detail detail,
                                                const Software& software = {});

// What a backward pass has whole of a kind of layers, or of an end of the model, where data-parallel ranks divide weights or
// gradients.
struct KindUnit {
  KindPosition position = KindPosition::layer;
  Bytes gathered;   // its weights
  Bytes gradients;  // its gradients, before their reduction
  Bytes reduction;  // the same as the reduction reads them
  friend bool operator==(const KindUnit&, const KindUnit&) = default;
};
struct ModelUnits {
  std::vector<KindUnit> kinds;  // in the order of ModelLayers::kinds
  bool keeps_gathered = false;  // from the forward pass on
  bool ends_in_root =
      false;      // embedding and head are one unit, which is whole from the first to the last moment
  Bytes buckets;  // of gradients, whatever unit is under way
  friend bool operator==(const ModelUnits&, const ModelUnits&) = default;
};

// What is held for the gradients of weights, from a backward pass for inputs until the pass for weights: inputs of
// linear layers and the gradients of their outputs, and of the embedding likewise. Normalizations hold nothing: the
// gradients of their few parameters are made with those of their inputs.
struct KindDeferred {
  KindPosition position = KindPosition::layer;
  Bytes bytes;
  friend bool operator==(const KindDeferred&, const KindDeferred&) = default;
};
struct DeferredActivations {
  std::vector<KindDeferred> kinds;  // in the order of ModelLayers::kinds
  friend bool operator==(const DeferredActivations&, const DeferredActivations&) = default;
};

DeferredActivations deferred_activations(const ModelLayers& layers, const Sharding& sharding,
                                         const Bindings& letters, Detail detail);
DeferredActivations deferred_activations(const Transformer& model, const Strategy& strategy,
                                         const Workload& workload, Detail detail);

// A virtual stage whose weights have passes of their own. What its layers recompute is held for them like what they
// kept.
StageActivations with_weight_passes(StageActivations stage, const DeferredActivations& deferred,
                                    const StagePlace& place, const Recomputation& recompute);

template <>
inline constexpr std::array<Spelling<OpPass>, 3> spellings<OpPass>{{
    {OpPass::forward, "forward"},
    {OpPass::recomputation, "recomputation"},
    {OpPass::backward, "backward"},
}};

}  // namespace headroom

// What one microbatch leaves on one rank when it passes through one stage chunk: layers under a recomputation
// policy, the embedding before the first, the head after the last, and the output that was sent on.
#pragma once

#include <vector>

#include "headroom/core/fixed_vector.hpp"
#include "headroom/core/units.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Consecutive layers, or consecutive checkpoints of several layers, that are kept alike.
struct CheckpointRun {
  std::int64_t count = 0;
  Bytes kept;      // by each, from forward to backward
  Bytes replayed;  // made again when the backward pass reaches it: its working set
  Bytes deferred;  // until a pass for weights of its own, where there is one
  friend bool operator==(const CheckpointRun&, const CheckpointRun&) = default;
};

// Those that are recomputed, and the rest.
using CheckpointRuns = FixedVector<CheckpointRun, 2>;

struct StageActivations {
  CheckpointRuns layers;  // in the order of the model
  Bytes embedding;        // on the first stage
  Bytes head;             // on the last stage: final normalization, output layer, loss
  Bytes output;           // the sent output, unless it is deallocated
  // Of embedding and head, until a pass for weights of its own, where there is one.
  Bytes embedding_deferred;
  Bytes head_deferred;
  friend bool operator==(const StageActivations&, const StageActivations&) = default;
};

// Bytes a rank keeps for one layer under a policy, and those that its replay makes again.
struct LayerActivations {
  Bytes kept;
  Bytes replayed;
  friend bool operator==(const LayerActivations&, const LayerActivations&) = default;
};

LayerActivations layer_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, const Recomputation& recompute, Detail detail);

// The parts of a model, each counted once: what stage chunks are put together from. Depends on t, b, sequence
// parallelism and the recomputation policy, and not on how the layers are divided.
struct ModelActivations {
  LayerActivations plain;     // of a layer that is not recomputed
  LayerActivations replayed;  // of one that is
  Bytes embedding;
  Bytes head;
  Bytes output;  // a stage's sent output, unless it is deallocated
  friend bool operator==(const ModelActivations&, const ModelActivations&) = default;
};

// The same in symbols, for all t, b and s that shard alike.
struct ModelActivationExprs {
  Expr plain_kept;
  Expr plain_replayed;
  Expr kept;
  Expr replayed;
  Expr embedding;
  Expr head;
  Expr output;
};

ModelActivationExprs model_activation_exprs(const Transformer& model, const Strategy& strategy,
                                            Detail detail);
ModelActivations evaluate(const ModelActivationExprs& exprs, const Bindings& letters);

ModelActivations model_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, Detail detail);

Bytes layers_kept(const StageActivations& stage);
Bytes kept(const StageActivations& stage);

StageActivations stage_activations(const ModelActivations& parts, const StagePlace& place,
                                   const Recomputation& recompute);

// Every stage chunk of the model, in order: p m of them.
std::vector<StageActivations> stage_activations(const Transformer& model, const Strategy& strategy,
                                                const Workload& workload, Detail detail);

// What is held for the gradients of weights, from a backward pass for inputs until the pass for weights: inputs of linear
// layers and the gradients of their outputs, and of the embedding likewise. Normalizations hold nothing: the gradients of
// their few parameters are made with those of their inputs.
struct DeferredActivations {
  Bytes layer;
  Bytes embedding;
  Bytes head;
  friend bool operator==(const DeferredActivations&, const DeferredActivations&) = default;
};

DeferredActivations deferred_activations(const Transformer& model, const Strategy& strategy,
                                         const Workload& workload, Detail detail);

// A stage chunk whose weights have passes of their own. What its layers replay is held for them like what they kept.
StageActivations with_weight_passes(StageActivations stage, const DeferredActivations& deferred,
                                    const StagePlace& place, const Recomputation& recompute);

}  // namespace headroom

// Activations that one microbatch leaves on one rank in one virtual stage: its layers under a recomputation
// policy, the embedding before the first layer, the output layer after the last, and the output that was sent
// on.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/memory/held.hpp"
#include "headroom/parallel/sharding.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Memory that a pass through a layer, or an end of the model, adds at its peak to what forward passes left.
// The pass is a backward pass (memory/backward.hpp). It can also be a recomputation, or a forward pass with
// as many others in flight (memory/forward.hpp).
struct BackwardPeak {
  OpPlace during;          // the op at the peak; none: the stack counts no peaks within passes
  Bytes freed;             // part of what the forward pass left or will leave
  Bytes recompute;         // still held by the recomputation
  Bytes gradients;         // gradients of activations
  Bytes logits;            // gradients of the logits, in the precision of the output layer
  Bytes gathered;          // sequence shards of all ranks, gathered
  Bytes weight_gradients;  // not yet added or reduced to shards, or dummies
  Bytes dequantized;       // weights that an op dequantizes to BF16 for its GEMMs
  Bytes fetched;           // activations from the host that are not freed yet
  Bytes forward_values;    // values of a forward pass that nothing saves
  friend bool operator==(const BackwardPeak&, const BackwardPeak&) = default;
};

constexpr Bytes total(const BackwardPeak& peak) {
  return peak.recompute + peak.gradients + peak.logits + peak.gathered + peak.weight_gradients +
         peak.dequantized + peak.fetched + peak.forward_values - peak.freed;
}

// Peak of a backward pass with its recomputation, and of the forward pass if that takes more. The forward
// peak is empty otherwise. Only a backward pass fetches from the host or reduces beside its computation.
struct PassPeaks {
  BackwardPeak backward;
  BackwardPeak forward;
  friend bool operator==(const PassPeaks&, const PassPeaks&) = default;
};

// Sharded weights and gradients that are whole on a rank at a moment of a backward pass (memory/units.hpp).
struct UnitBytes {
  Bytes gathered;   // whole weights
  Bytes gradients;  // whole gradients beyond BackwardPeak::weight_gradients
  Bytes made;       // gradients that the pass has made in units that it has left (grows_gradients)
  friend bool operator==(const UnitBytes&, const UnitBytes&) = default;
};

// Unit bytes of a run of layers, in the order of the model: beside its first layer, its last, and those
// between.
struct RunUnits {
  UnitBytes first;
  UnitBytes inner;
  UnitBytes last;
  friend bool operator==(const RunUnits&, const RunUnits&) = default;
};

// A run of consecutive layers, or of checkpoints of several layers, that save the same bytes.
struct CheckpointRun {
  std::int64_t count = 0;
  Bytes kept;        // saved by each, from forward to backward pass
  Bytes recomputed;  // working set when the backward pass recomputes it
  Bytes deferred;    // held for a separate weight-gradient pass, if any
  Bytes on_host;     // on the host for each, from forward to backward pass
  PassPeaks peaks;
  RunUnits units;
  friend bool operator==(const CheckpointRun&, const CheckpointRun&) = default;
};

struct StageActivations {
  std::vector<CheckpointRun> layers;  // in the order of the model
  Bytes embedding;                    // on the first stage: everything before the layers
  // On the last stage: everything after the layers (final normalization, output layer, loss).
  Bytes head;
  Bytes output;  // the sent output, unless it is deallocated
  // Bytes that the embedding and the output layer hold for a separate weight-gradient pass, if any.
  Bytes embedding_deferred;
  Bytes head_deferred;
  PassPeaks embedding_peaks;
  PassPeaks head_peaks;
  UnitBytes embedding_units;
  UnitBytes head_units;
  Bytes grown_gradients;  // made by a backward pass (grows_gradients)
  UnitBytes end_units;    // after a backward pass, while the last unit is reduced
  friend bool operator==(const StageActivations&, const StageActivations&) = default;
};

// Bytes that a rank saves for one layer under a policy, and bytes that its recomputation holds.
struct LayerActivations {
  Bytes kept;
  Bytes recomputed;
  // Bytes that wait on the host for the backward pass; not part of `kept` (memory/offloaded.hpp).
  Bytes on_host;
  PassPeaks peaks;
  friend bool operator==(const LayerActivations&, const LayerActivations&) = default;
};

// Returns the activations of a layer of the model's first kind.
LayerActivations layer_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, const Recomputation& recompute, Detail detail);

// Activations of one layer of a kind, or of an end of the model. Of the ends, only layers of multi-token
// prediction are recomputed.
struct KindActivations {
  KindPosition position = KindPosition::layer;
  LayerActivations plain;       // without recomputation
  LayerActivations recomputed;  // with recomputation
  friend bool operator==(const KindActivations&, const KindActivations&) = default;
};

// Activations of the parts of a model, each counted once; virtual stages are composed from them. They depend
// on t, b, sequence parallelism and the recomputation policy, but not on the division into stages.
struct ModelActivations {
  std::vector<KindActivations> kinds;  // in the order of ModelLayers::kinds
  Bytes output;                        // a stage's sent output, unless it is deallocated
  friend bool operator==(const ModelActivations&, const ModelActivations&) = default;
};

// Symbolic ModelActivations, valid for every t, b and s that shards this way.
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

// Returns the bytes of the output that a stage sends.
Expr output_of_stage(const ModelLayers& layers, const Sharding& sharding);

// Returns whether the loss saves the logits themselves.
bool saves_logits(const ModelLayers& layers);

// Returns the bytes of the logits that the last stage makes, or zero if it makes them in chunks.
Expr logits_of_stage(const ModelLayers& layers, const Sharding& sharding);

ModelActivationExprs model_activation_exprs(const ModelLayers& layers, const Sharding& sharding,
                                            const Strategy& strategy, Detail detail);
ModelActivations evaluate(const ModelActivationExprs& exprs, const Bindings& letters);

ModelActivations model_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, Detail detail);

Bytes layers_kept(const StageActivations& stage);
Bytes kept(const StageActivations& stage);

StageActivations stage_activations(const ModelActivations& parts, const StagePlace& place,
                                   const Recomputation& recompute);
// Writes stage_activations() into an existing value. A search needs many, and a new value would have its
// memory cleared each time.
void set_stage_activations(StageActivations& stage, const ModelActivations& parts, const StagePlace& place,
                           const Recomputation& recompute);
// Returns the activations of the ends and the output, without layers, for models whose ends recompute
// nothing.
StageActivations end_activations(const ModelActivations& parts, const StagePlace& place);

// Returns every virtual stage of the model, in order: p m of them. With separate weight-gradient passes,
// stages include what those passes need.
std::vector<StageActivations> stage_activations(const ModelLayers& layers, const Sharding& sharding,
                                                const Bindings& letters, const Strategy& strategy,
                                                const Workload& workload, Detail detail,
                                                const Software& software = {});
std::vector<StageActivations> stage_activations(const Transformer& model, const Strategy& strategy,
                                                const Workload& workload, Detail detail,
                                                const Software& software = {});

// Weights and gradients that are whole during a backward pass through a kind of layer, or an end of the
// model, if data-parallel ranks shard weights or gradients.
struct KindUnit {
  KindPosition position = KindPosition::layer;
  Bytes gathered;   // whole weights of the unit
  Bytes gradients;  // gradients of the unit before their reduction
  Bytes reduction;  // gradients as the reduction reads them
  Bytes kept;       // gradients that the backward pass makes and the step frees (grows_gradients)
  Bytes stepped;    // reduced gradients that a step in the backward pass reads and frees
  friend bool operator==(const KindUnit&, const KindUnit&) = default;
};
struct ModelUnits {
  std::vector<KindUnit> kinds;  // in the order of ModelLayers::kinds
  bool keeps_gathered = false;  // weights stay gathered after the forward pass
  // Embedding and output layer are one unit, which stays whole throughout.
  bool ends_in_root = false;
  Bytes buckets;  // gradient buckets, during any unit
  // With steps in the backward pass: the gradient of tied weights, which waits for its other half from the
  // output layer to the embedding [PyTorch, torch/csrc/autograd/engine.cpp, InputBuffer].
  Bytes tied;
  friend bool operator==(const ModelUnits&, const ModelUnits&) = default;
};

// Bytes held for weight gradients, from an input-gradient pass until the weight-gradient pass: inputs of
// linears and the gradients of their outputs, and the same of the embedding. Normalizations hold nothing,
// because the gradients of their few parameters are computed with those of their inputs.
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

// Returns a virtual stage with separate weight-gradient passes. What its layers recompute is held for them,
// as is what they saved.
StageActivations with_weight_passes(StageActivations stage, const DeferredActivations& deferred,
                                    const StagePlace& place, const Recomputation& recompute);

}  // namespace headroom

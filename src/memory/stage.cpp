#include "headroom/memory/stage.hpp"

#include <algorithm>

#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

// Layers of one stage chunk, grouped by how they are kept.
CheckpointRuns checkpoint_runs(std::int64_t layers, const Recomputation& recompute,
                               const LayerActivations& plain, const LayerActivations& replayed) {
  CheckpointRuns runs;
  const auto append = [&](std::int64_t count, Bytes kept, Bytes working_set) {
    if (count > 0) runs.push_back({count, kept, working_set});
  };
  const std::int64_t k = recompute.layers == 0 ? layers : std::min(recompute.layers, layers);
  if (recompute.policy == RecomputePolicy::full && recompute.method == RecomputeMethod::uniform) {
    // The first layer's input is the checkpoint; the inputs of the others are made again too.
    const auto checkpoint_of = [&](std::int64_t members) {
      append(members == k ? layers / k : 1, replayed.kept,
             replayed.replayed + static_cast<double>(members - 1) * plain.kept);
    };
    checkpoint_of(k);
    if (layers % k > 0) checkpoint_of(layers % k);
  } else {
    append(k, replayed.kept, replayed.replayed);
    append(layers - k, plain.kept, plain.replayed);
  }
  return runs;
}

struct LayerExprs {
  Expr kept;
  Expr replayed;
};

LayerExprs layer_exprs(const Transformer& model, const Sharding& sharding, const Recomputation& recompute,
                       Detail detail) {
  const OpTable table = layer_ops(model.architecture);
  const StoredTensors tensors = stored_tensors(table, sharding, replay_of(table, recompute), detail);
  // A sharded checkpoint is gathered again for its replay, so the replay holds a whole layer.
  return {.kept = kept_bytes(tensors),
          .replayed = recompute.distribute_saved_activations
                          ? kept_bytes(stored_tensors(table, sharding, {}, detail))
                          : dropped_bytes(tensors)};
}

bool makes_weight_gradients(const Op& op) {
  return op.kind == OpKind::linear || op.kind == OpKind::embedding;
}

// What the gradients of a table's weights are made from, each value and each gradient once.
Expr deferred_bytes(const OpTable& table, const Sharding& sharding, Detail detail) {
  Expr sum;
  for (const StoredTensor& tensor : stored_tensors(table, sharding, {}, detail)) {
    const bool needed = std::any_of(table.ops().begin(), table.ops().end(), [&](const Op& op) {
      return makes_weight_gradients(op) &&
             std::any_of(op.saves.begin(), op.saves.end(),
                         [&](const Save& save) { return save.value == tensor.value; });
    });
    if (needed) sum += tensor.bytes;
  }
  for (const Op& op : table.ops()) {
    if (!makes_weight_gradients(op)) continue;
    for (const ValueId output : op.outputs) {
      const Value& value = table[output];
      sum += value.elements * size_of(value.dtype) * share(value.placement, sharding);
    }
  }
  return sum;
}

}  // namespace

LayerActivations layer_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, const Recomputation& recompute, Detail detail) {
  const auto [kept, replayed] = layer_exprs(model, sharding_of(model, strategy), recompute, detail);
  const Bindings letters = bindings(model, strategy, workload);
  return {.kept = Bytes(kept.evaluate(letters)), .replayed = Bytes(replayed.evaluate(letters))};
}

Bytes layers_kept(const StageActivations& stage) {
  Bytes sum;
  for (const CheckpointRun& run : stage.layers) sum += static_cast<double>(run.count) * run.kept;
  return sum;
}

Bytes kept(const StageActivations& stage) {
  return layers_kept(stage) + stage.embedding + stage.head + stage.output;
}

ModelActivationExprs model_activation_exprs(const Transformer& model, const Strategy& strategy,
                                            Detail detail) {
  const Sharding sharding = sharding_of(model, strategy);
  const LayerExprs plain = layer_exprs(model, sharding, {}, detail);
  const LayerExprs replayed = layer_exprs(model, sharding, strategy.recompute, detail);
  ModelActivationExprs parts{
      .plain_kept = plain.kept,
      .plain_replayed = plain.replayed,
      .kept = replayed.kept,
      .replayed = replayed.replayed,
      .embedding = kept_bytes(stored_tensors(embedding_ops(model.architecture), sharding, {}, detail)),
      .head = kept_bytes(stored_tensors(head_ops(model.architecture), sharding, {}, detail)),
      .output = {},
  };
  if (strategy.keep_pipeline_outputs) {
    using namespace symbols;
    const Monomial boundary =
        of_own_tokens(s * b * h * size_of(model.architecture.kernels.residual_dtype), sharding);
    parts.output = boundary * share(Placement::boundary, sharding);
  }
  return parts;
}

ModelActivations evaluate(const ModelActivationExprs& exprs, const Bindings& letters) {
  const auto bytes = [&](const Expr& expr) { return Bytes(expr.evaluate(letters)); };
  return {.plain = {.kept = bytes(exprs.plain_kept), .replayed = bytes(exprs.plain_replayed)},
          .replayed = {.kept = bytes(exprs.kept), .replayed = bytes(exprs.replayed)},
          .embedding = bytes(exprs.embedding),
          .head = bytes(exprs.head),
          .output = bytes(exprs.output)};
}

ModelActivations model_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, Detail detail) {
  return evaluate(model_activation_exprs(model, strategy, detail), bindings(model, strategy, workload));
}

StageActivations stage_activations(const ModelActivations& parts, const StagePlace& place,
                                   const Recomputation& recompute) {
  return {.layers = checkpoint_runs(place.layers, recompute, parts.plain, parts.replayed),
          .embedding = place.first ? parts.embedding : Bytes(0),
          .head = place.last ? parts.head : Bytes(0),
          .output = place.last ? Bytes(0) : parts.output};
}

std::vector<StageActivations> stage_activations(const Transformer& model, const Strategy& strategy,
                                                const Workload& workload, Detail detail) {
  const ModelActivations parts = model_activations(model, strategy, workload, detail);
  std::vector<StageActivations> stages;
  for (const StagePlace& place : stage_places(model, strategy)) {
    stages.push_back(stage_activations(parts, place, strategy.recompute));
  }
  return stages;
}

DeferredActivations deferred_activations(const Transformer& model, const Strategy& strategy,
                                         const Workload& workload, Detail detail) {
  const Sharding sharding = sharding_of(model, strategy);
  const Bindings letters = bindings(model, strategy, workload);
  const auto bytes = [&](const OpTable& table) {
    return Bytes(deferred_bytes(table, sharding, detail).evaluate(letters));
  };
  return {.layer = bytes(layer_ops(model.architecture)),
          .embedding = bytes(embedding_ops(model.architecture)),
          .head = bytes(head_ops(model.architecture))};
}

StageActivations with_weight_passes(StageActivations stage, const DeferredActivations& deferred,
                                    const StagePlace& place, const Recomputation& recompute) {
  const bool shared =
      recompute.policy == RecomputePolicy::full && recompute.method == RecomputeMethod::uniform;
  std::int64_t left = place.layers;
  for (CheckpointRun& run : stage.layers) {
    // Of a checkpoint that several layers share, all of them.
    const std::int64_t members = shared ? std::min(std::max<std::int64_t>(recompute.layers, 1), left) : 1;
    run.deferred = static_cast<double>(members) * deferred.layer;
    left -= run.count * members;
  }
  if (place.first) stage.embedding_deferred = deferred.embedding;
  if (place.last) stage.head_deferred = deferred.head;
  return stage;
}

}  // namespace headroom

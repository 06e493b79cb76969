#include "headroom/memory/stage.hpp"

#include <algorithm>

#include "headroom/memory/backward.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

// Layers of one kind in one stage chunk, grouped by how they are kept. `before` of other kinds stand before them and count
// among the first K.
void append_runs(CheckpointRuns& runs, std::int64_t layers, std::int64_t before,
                 const Recomputation& recompute, const LayerActivations& plain,
                 const LayerActivations& replayed) {
  if (layers == 0) return;
  const auto append = [&](std::int64_t count, Bytes kept, Bytes working_set, const BackwardPeak& backward) {
    if (count > 0) {
      runs.push_back({.count = count, .kept = kept, .replayed = working_set, .backward = backward});
    }
  };
  if (recompute.policy == RecomputePolicy::full && recompute.method == RecomputeMethod::uniform) {
    const std::int64_t k = recompute.layers == 0 ? layers : std::min(recompute.layers, layers);
    // The first layer's input is the checkpoint; the inputs of the others are made again too.
    const auto checkpoint_of = [&](std::int64_t members) {
      const Bytes others = static_cast<double>(members - 1) * plain.kept;
      BackwardPeak backward = replayed.backward;
      if (backward.during.op != nowhere) backward.replay += others;
      append(members == k ? layers / k : 1, replayed.kept, replayed.replayed + others, backward);
    };
    checkpoint_of(k);
    if (layers % k > 0) checkpoint_of(layers % k);
  } else {
    const std::int64_t first = std::max<std::int64_t>(0, recompute.layers - before);
    const std::int64_t k = recompute.layers == 0 ? layers : std::min(first, layers);
    append(k, replayed.kept, replayed.replayed, replayed.backward);
    append(layers - k, plain.kept, plain.replayed, plain.backward);
  }
}

struct LayerExprs {
  Expr kept;
  Expr replayed;
};

LayerExprs layer_exprs(const OpTable& table, const Sharding& sharding, const Recomputation& recompute,
                       Detail detail) {
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
      sum += bytes_on_rank(value, value.placement, sharding);
    }
  }
  return sum;
}

}  // namespace

LayerActivations layer_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, const Recomputation& recompute, Detail detail) {
  const auto [kept, replayed] =
      layer_exprs(layer_ops(model, strategy.micro_batch), sharding_of(model, strategy), recompute, detail);
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

ModelActivationExprs model_activation_exprs(const ModelLayers& layers, const Sharding& sharding,
                                            const Strategy& strategy, Detail detail) {
  ModelActivationExprs parts;
  for (const LayerKind& kind : layers.kinds) {
    const LayerExprs plain = layer_exprs(kind.ops, sharding, {}, detail);
    const LayerExprs replayed = kind.position == KindPosition::layer
                                    ? layer_exprs(kind.ops, sharding, strategy.recompute, detail)
                                    : plain;
    parts.kinds.push_back({.position = kind.position,
                           .plain_kept = plain.kept,
                           .plain_replayed = plain.replayed,
                           .kept = replayed.kept,
                           .replayed = replayed.replayed});
  }
  if (strategy.keep_pipeline_outputs) {
    using namespace symbols;
    const Monomial boundary = of_own_tokens(s * b * h * size_of(layers.boundary), sharding);
    parts.output = boundary * share(Placement::boundary, sharding);
  }
  return parts;
}

ModelActivations evaluate(const ModelActivationExprs& exprs, const Bindings& letters) {
  const auto bytes = [&](const Expr& expr) { return Bytes(expr.evaluate(letters)); };
  ModelActivations parts{.kinds = {}, .output = bytes(exprs.output)};
  for (const KindActivationExprs& kind : exprs.kinds) {
    parts.kinds.push_back({.position = kind.position,
                           .plain = {.kept = bytes(kind.plain_kept), .replayed = bytes(kind.plain_replayed)},
                           .replayed = {.kept = bytes(kind.kept), .replayed = bytes(kind.replayed)}});
  }
  return parts;
}

ModelActivations model_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, Detail detail) {
  return evaluate(model_activation_exprs(layers_of(model, strategy.micro_batch), sharding_of(model, strategy),
                                         strategy, detail),
                  bindings(model, strategy, workload));
}

namespace {

void set_end_activations(StageActivations& stage, const ModelActivations& parts, const StagePlace& place) {
  stage.layers.clear();
  stage.embedding = stage.head = stage.embedding_deferred = stage.head_deferred = Bytes(0);
  stage.embedding_backward = stage.head_backward = {};
  stage.output = place.last ? Bytes(0) : parts.output;
  for (std::size_t i = 0; i < parts.kinds.size(); ++i) {
    const KindActivations& kind = parts.kinds[i];
    if (kind.position == KindPosition::layer || place.of_kind[i] == 0) continue;
    const bool first = kind.position == KindPosition::first;
    Bytes& end = first ? stage.embedding : stage.head;
    end += static_cast<double>(place.of_kind[i]) * kind.plain.kept;
    (first ? stage.embedding_backward : stage.head_backward) = kind.plain.backward;
  }
}

}  // namespace

StageActivations end_activations(const ModelActivations& parts, const StagePlace& place) {
  StageActivations stage;
  set_end_activations(stage, parts, place);
  return stage;
}

void set_stage_activations(StageActivations& stage, const ModelActivations& parts, const StagePlace& place,
                           const Recomputation& recompute) {
  set_end_activations(stage, parts, place);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < parts.kinds.size(); ++i) {
    const KindActivations& kind = parts.kinds[i];
    if (kind.position != KindPosition::layer) continue;
    append_runs(stage.layers, place.of_kind[i], before, recompute, kind.plain, kind.replayed);
    before += place.of_kind[i];
  }
}

StageActivations stage_activations(const ModelActivations& parts, const StagePlace& place,
                                   const Recomputation& recompute) {
  StageActivations stage;
  set_stage_activations(stage, parts, place, recompute);
  return stage;
}

std::vector<StageActivations> stage_activations(const ModelLayers& layers, const Sharding& sharding,
                                                const Bindings& letters, const Strategy& strategy,
                                                Detail detail, const Software& software) {
  ModelActivations parts = evaluate(model_activation_exprs(layers, sharding, strategy, detail), letters);
  set_backward_peaks(parts, layers, sharding, strategy.recompute, detail, software, letters);
  std::vector<StageActivations> stages;
  for (const StagePlace& place : stage_places(layers, strategy)) {
    stages.push_back(stage_activations(parts, place, strategy.recompute));
    if (!has_weight_passes(strategy.schedule)) continue;
    stages.back() = with_weight_passes(stages.back(), deferred_activations(layers, sharding, letters, detail),
                                       place, strategy.recompute);
  }
  return stages;
}

std::vector<StageActivations> stage_activations(const Transformer& model, const Strategy& strategy,
                                                const Workload& workload, Detail detail,
                                                const Software& software) {
  return stage_activations(layers_of(model, strategy.micro_batch), sharding_of(model, strategy),
                           bindings(model, strategy, workload), strategy, detail, software);
}

DeferredActivations deferred_activations(const Transformer& model, const Strategy& strategy,
                                         const Workload& workload, Detail detail) {
  return deferred_activations(layers_of(model, strategy.micro_batch), sharding_of(model, strategy),
                              bindings(model, strategy, workload), detail);
}

DeferredActivations deferred_activations(const ModelLayers& layers, const Sharding& sharding,
                                         const Bindings& letters, Detail detail) {
  DeferredActivations deferred;
  for (const LayerKind& kind : layers.kinds) {
    deferred.kinds.push_back({.position = kind.position,
                              .bytes = Bytes(deferred_bytes(kind.ops, sharding, detail).evaluate(letters))});
  }
  return deferred;
}

StageActivations with_weight_passes(StageActivations stage, const DeferredActivations& deferred,
                                    const StagePlace& place, const Recomputation& recompute) {
  const bool shared =
      recompute.policy == RecomputePolicy::full && recompute.method == RecomputeMethod::uniform;
  CheckpointRun* run = stage.layers.begin();
  for (std::size_t i = 0; i < deferred.kinds.size(); ++i) {
    const auto& [position, bytes] = deferred.kinds[i];
    std::int64_t left = place.of_kind[i];
    if (position != KindPosition::layer) {
      Bytes& end = position == KindPosition::first ? stage.embedding_deferred : stage.head_deferred;
      end += static_cast<double>(left) * bytes;
      continue;
    }
    for (; left > 0; ++run) {
      // Of a checkpoint that several layers share, all of them.
      const std::int64_t members = shared ? std::min(std::max<std::int64_t>(recompute.layers, 1), left) : 1;
      run->deferred = static_cast<double>(members) * bytes;
      run->backward.freed = std::min(run->backward.freed, std::max(run->kept - run->deferred, Bytes(0)));
      left -= run->count * members;
    }
  }
  return stage;
}

}  // namespace headroom

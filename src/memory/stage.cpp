#include "headroom/memory/stage.hpp"

#include <algorithm>
#include <optional>

#include "headroom/memory/backward.hpp"
#include "headroom/memory/offloaded.hpp"
#include "headroom/memory/units.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "memory/kept_layers.hpp"

namespace headroom {
namespace {

struct LayerExprs {
  Expr kept;
  Expr recomputed;
};

LayerExprs layer_exprs(const OpTable& table, const Sharding& sharding, const RecomputedOps& recomputed,
                       Detail detail) {
  const StoredTensors tensors = stored_tensors(table, sharding, recomputed, detail);
  // A sharded checkpoint is gathered again for its recomputation, so the recomputation holds a whole layer.
  return {.kept = kept_bytes(tensors),
          .recomputed = recomputed.shard_checkpoint ? kept_bytes(stored_tensors(table, sharding, {}, detail))
                                                    : dropped_bytes(tensors)};
}

bool makes_weight_gradients(const Op& op) {
  return op.kind == OpKind::linear || op.kind == OpKind::embedding;
}

// Returns bytes that a table's weight gradients are computed from, each value and each gradient counted once.
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
      if (is_narrow(value.dtype)) continue;  // a copy of the input
      const Dtype dtype = multiplies_narrow(op) ? op.products[0].dtype : value.dtype;
      sum += whole_bytes(value, sharding, dtype) * share(value.placement, sharding);
    }
  }
  return sum;
}

}  // namespace

LayerActivations layer_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, const Recomputation& recompute, Detail detail) {
  const OpTable table = layer_table(model, strategy);
  const Sharding sharding = sharding_of(model, strategy);
  const auto [kept, recomputed] =
      layer_exprs(table, sharding, recomputed_ops_of(table, recompute, sharding), detail);
  const Bindings letters = bindings(model, strategy, workload);
  return {.kept = Bytes(kept.evaluate(letters)), .recomputed = Bytes(recomputed.evaluate(letters))};
}

Bytes layers_kept(const StageActivations& stage) {
  Bytes sum;
  for (const CheckpointRun& run : stage.layers) sum += static_cast<double>(run.count) * run.kept;
  return sum;
}

Bytes kept(const StageActivations& stage) {
  return layers_kept(stage) + stage.embedding + stage.head + stage.output;
}

Expr output_of_stage(const ModelLayers& layers, const Sharding& sharding) {
  using namespace symbols;
  return of_own_tokens(s * b * h * size_of(layers.boundary), sharding) * share(Placement::boundary, sharding);
}

bool saves_logits(const ModelLayers& layers) {
  const auto& ops = layers.kinds.back().ops.ops();
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) {
    return op.kind == OpKind::loss && std::any_of(op.saves.begin(), op.saves.end(), [&](const Save& save) {
             return save.value == op.inputs[0];
           });
  });
}

Expr logits_of_stage(const ModelLayers& layers, const Sharding& sharding) {
  using namespace symbols;
  const OpTable& head = layers.kinds.back().ops;
  Expr sum;
  for (const Op& op : head.ops()) {
    if (op.kind != OpKind::loss) continue;
    const Value& logits = head[op.inputs[0]];
    if (logits.elements == s * b * v)
      sum += of_own_tokens(logits.elements * size_of(logits.dtype), sharding) *
             share(logits.placement, sharding);
  }
  return sum;
}

ModelActivationExprs model_activation_exprs(const ModelLayers& layers, const Sharding& sharding,
                                            const Strategy& strategy, Detail detail) {
  ModelActivationExprs parts;
  for (const LayerKind& kind : layers.kinds) {
    const Sharding of_kind = sharding_of(kind.sizes, sharding, strategy.tensor_parallel);
    const LayerExprs plain = layer_exprs(kind.ops, of_kind, {}, detail);
    const LayerExprs recomputed =
        is_layer(kind)
            ? layer_exprs(kind.ops, of_kind, recomputed_ops_of(kind, strategy.recompute, of_kind), detail)
            : plain;
    parts.kinds.push_back({.position = kind.position,
                           .sizes = kind.sizes,
                           .plain_kept = plain.kept,
                           .plain_recomputed = plain.recomputed,
                           .kept = recomputed.kept,
                           .recomputed = recomputed.recomputed});
  }
  if (strategy.keep_pipeline_outputs) parts.output = output_of_stage(layers, sharding);
  return parts;
}

ModelActivations evaluate(const ModelActivationExprs& exprs, const Bindings& letters) {
  ModelActivations parts{.kinds = {}, .output = Bytes(exprs.output.evaluate(letters))};
  for (const KindActivationExprs& kind : exprs.kinds) {
    const Bindings of_kind = bindings_of(kind.sizes, letters);
    const auto bytes = [&](const Expr& expr) { return Bytes(expr.evaluate(of_kind)); };
    parts.kinds.push_back(
        {.position = kind.position,
         .plain = {.kept = bytes(kind.plain_kept), .recomputed = bytes(kind.plain_recomputed)},
         .recomputed = {.kept = bytes(kind.kept), .recomputed = bytes(kind.recomputed)}});
  }
  return parts;
}

ModelActivations model_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, Detail detail) {
  return evaluate(
      model_activation_exprs(layers_of(model, strategy), sharding_of(model, strategy), strategy, detail),
      bindings(model, strategy, workload));
}

namespace {

bool holds(const std::vector<LayerRun>& runs, std::size_t kind) {
  return std::any_of(runs.begin(), runs.end(), [&](const LayerRun& run) { return run.kind == kind; });
}

// Takes the larger peak. A backward pass goes through an end from its last kind to its first, and frees what
// later kinds saved on its way.
void take_worst(BackwardPeak& worst, BackwardPeak of_kind, Bytes freed) {
  of_kind.freed += freed;
  if (worst.during.op == nowhere || total(of_kind) > total(worst)) worst = of_kind;
}
void take_worst(PassPeaks& worst, const PassPeaks& of_kind, Bytes freed) {
  take_worst(worst.backward, of_kind.backward, freed);
  if (of_kind.forward.during.op != nowhere) take_worst(worst.forward, of_kind.forward, freed);
}

void set_end_activations(StageActivations& stage, const ModelActivations& parts, const StagePlace& place,
                         const Recomputation& recompute) {
  stage.layers.clear();
  stage.embedding = stage.head = stage.embedding_deferred = stage.head_deferred = Bytes(0);
  stage.embedding_units = stage.head_units = {};
  stage.grown_gradients = Bytes(0);
  stage.end_units = {};
  if (stage.embedding_peaks.backward.during.op != nowhere) stage.embedding_peaks = {};
  if (stage.head_peaks.backward.during.op != nowhere) stage.head_peaks = {};
  stage.output = place.last ? Bytes(0) : parts.output;
  for (std::size_t i = parts.kinds.size(); i-- > 0;) {
    const KindActivations& kind = parts.kinds[i];
    if (kind.position == KindPosition::layer || place.of_kind[i] == 0) continue;
    const bool first = kind.position == KindPosition::first;
    const bool recomputed = holds(place.predictors, i) && recomputes_all_layers(recompute);
    const LayerActivations& one = recomputed ? kind.recomputed : kind.plain;
    Bytes& end = first ? stage.embedding : stage.head;
    take_worst(first ? stage.embedding_peaks : stage.head_peaks, one.peaks, end);
    end += static_cast<double>(place.of_kind[i]) * one.kept;
  }
}

// Adds layers of a kind to a shared checkpoint. A recomputation holds all that they save, and the peak of a
// backward pass may be in one of them.
void join(CheckpointRun& run, std::int64_t members, const KindActivations& kind) {
  const Bytes others = static_cast<double>(members) * kind.plain.kept;
  run.recomputed += others;
  if (run.peaks.backward.during.op == nowhere) return;
  run.peaks.backward.recompute += others;
  BackwardPeak joined = kind.recomputed.peaks.backward;
  joined.recompute += run.recomputed - kind.recomputed.recomputed;
  if (total(joined) > total(run.peaks.backward)) run.peaks.backward = joined;
  const BackwardPeak& forward = kind.recomputed.peaks.forward;
  if (forward.during.op == nowhere) return;
  if (run.peaks.forward.during.op == nowhere || total(forward) > total(run.peaks.forward))
    run.peaks.forward = forward;
}

}  // namespace

StageActivations end_activations(const ModelActivations& parts, const StagePlace& place) {
  StageActivations stage;
  set_end_activations(stage, parts, place, {});
  return stage;
}

void set_stage_activations(StageActivations& stage, const ModelActivations& parts, const StagePlace& place,
                           const Recomputation& recompute) {
  set_end_activations(stage, parts, place, recompute);
  visit_kept_layers(place, recompute, [&](const KeptLayers& of) {
    const KindActivations& kind = parts.kinds[of.kind];
    const LayerActivations& one = of.recomputed ? kind.recomputed : kind.plain;
    if (of.joins) {
      join(stage.layers.back(), of.members, kind);
      return;
    }
    stage.layers.push_back({.count = of.count,
                            .kept = one.kept,
                            .recomputed = one.recomputed,
                            .on_host = one.on_host,
                            .peaks = one.peaks});
    // The first layer's input is the checkpoint; the inputs of the others are recomputed too.
    if (of.members > 1) join(stage.layers.back(), of.members - 1, kind);
  });
}

StageActivations stage_activations(const ModelActivations& parts, const StagePlace& place,
                                   const Recomputation& recompute) {
  StageActivations stage;
  set_stage_activations(stage, parts, place, recompute);
  return stage;
}

std::vector<StageActivations> stage_activations(const ModelLayers& layers, const Sharding& sharding,
                                                const Bindings& letters, const Strategy& strategy,
                                                const Workload& workload, Detail detail,
                                                const Software& software) {
  ModelActivations parts = evaluate(model_activation_exprs(layers, sharding, strategy, detail), letters);
  KnownPeaks peaks;
  set_backward_peaks(parts, layers, sharding, strategy.recompute, detail, software, letters,
                     pass_gradients(strategy, workload, software), peaks);
  set_offloaded(parts, layers, sharding, strategy.offload, strategy.recompute, detail, letters);
  std::optional<ModelUnits> units;
  if (has_unit_bytes(strategy, workload, software)) {
    const ModelParameterExprs parameters = model_parameter_exprs(layers, sharding, strategy.tensor_parallel);
    units = model_units(layers, evaluate(parameters, letters), strategy, workload, software);
  }
  const Recomputation apart = set_apart(strategy.recompute, strategy.offload);
  std::vector<StageActivations> stages;
  for (const StagePlace& place : stage_places(layers, strategy)) {
    stages.push_back(stage_activations(parts, place, apart));
    if (units) set_units(stages.back(), *units, place, apart);
    if (!has_weight_passes(strategy.schedule)) continue;
    stages.back() = with_weight_passes(stages.back(), deferred_activations(layers, sharding, letters, detail),
                                       place, strategy.recompute);
  }
  return stages;
}

std::vector<StageActivations> stage_activations(const Transformer& model, const Strategy& strategy,
                                                const Workload& workload, Detail detail,
                                                const Software& software) {
  return stage_activations(layers_of(model, strategy, software), sharding_of(model, strategy),
                           bindings(model, strategy, workload), strategy, workload, detail, software);
}

DeferredActivations deferred_activations(const Transformer& model, const Strategy& strategy,
                                         const Workload& workload, Detail detail) {
  return deferred_activations(layers_of(model, strategy), sharding_of(model, strategy),
                              bindings(model, strategy, workload), detail);
}

DeferredActivations deferred_activations(const ModelLayers& layers, const Sharding& sharding,
                                         const Bindings& letters, Detail detail) {
  DeferredActivations deferred;
  const auto ranks = static_cast<std::int64_t>(letters[Symbol::tensor_parallel]);
  for (const LayerKind& kind : layers.kinds) {
    const Expr bytes = deferred_bytes(kind.ops, sharding_of(kind.sizes, sharding, ranks), detail);
    deferred.kinds.push_back(
        {.position = kind.position, .bytes = Bytes(bytes.evaluate(bindings_of(kind.sizes, letters)))});
  }
  return deferred;
}

StageActivations with_weight_passes(StageActivations stage, const DeferredActivations& deferred,
                                    const StagePlace& place, const Recomputation& recompute) {
  for (std::size_t i = 0; i < deferred.kinds.size(); ++i) {
    const auto& [position, bytes] = deferred.kinds[i];
    if (position == KindPosition::layer) continue;
    Bytes& end = position == KindPosition::first ? stage.embedding_deferred : stage.head_deferred;
    end += static_cast<double>(place.of_kind[i]) * bytes;
  }
  std::size_t next = 0;
  visit_kept_layers(place, recompute, [&](const KeptLayers& of) {
    if (!of.joins) ++next;
    // All bytes of a checkpoint that several layers share.
    CheckpointRun& run = stage.layers[next - 1];
    run.deferred += static_cast<double>(of.members) * deferred.kinds[of.kind].bytes;
    Bytes& freed = run.peaks.backward.freed;
    freed = std::min(freed, std::max(run.kept - run.deferred, Bytes(0)));
  });
  return stage;
}

}  // namespace headroom

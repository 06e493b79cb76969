#include "headroom/memory/stage.hpp"

#include <algorithm>

#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

// Layers of one stage chunk, grouped by how they are kept.
std::vector<CheckpointRun> checkpoint_runs(std::int64_t layers, const Recomputation& recompute,
                                           const LayerActivations& plain, const LayerActivations& replayed) {
  std::vector<CheckpointRun> runs;
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

}  // namespace

LayerActivations layer_activations(const Transformer& model, const Strategy& strategy,
                                   const Workload& workload, const Recomputation& recompute, Detail detail) {
  const OpTable table = layer_ops(model.architecture);
  const StoredTensors tensors =
      stored_tensors(table, sharding_of(model, strategy), replay_of(table, recompute), detail);
  const Bindings letters = bindings(model, strategy, workload);
  // A sharded checkpoint is gathered again for its replay, so the replay holds a whole layer.
  const Expr replayed = recompute.shard_checkpoint
                            ? kept_bytes(stored_tensors(table, sharding_of(model, strategy), {}, detail))
                            : dropped_bytes(tensors);
  return {.kept = Bytes(kept_bytes(tensors).evaluate(letters)),
          .replayed = Bytes(replayed.evaluate(letters))};
}

Bytes layers_kept(const StageActivations& stage) {
  Bytes sum;
  for (const CheckpointRun& run : stage.layers) sum += static_cast<double>(run.count) * run.kept;
  return sum;
}

Bytes kept(const StageActivations& stage) {
  return layers_kept(stage) + stage.embedding + stage.head + stage.output;
}

std::vector<StageActivations> stage_activations(const Transformer& model, const Strategy& strategy,
                                                const Workload& workload, Detail detail) {
  const Sharding sharding = sharding_of(model, strategy);
  const Bindings letters = bindings(model, strategy, workload);
  const auto kept_by = [&](const OpTable& table) {
    return Bytes(kept_bytes(stored_tensors(table, sharding, {}, detail)).evaluate(letters));
  };
  const LayerActivations plain = layer_activations(model, strategy, workload, {}, detail);
  const LayerActivations replayed = layer_activations(model, strategy, workload, strategy.recompute, detail);

  std::vector<StageActivations> stages;
  for (const std::int64_t layers : layers_by_stage(model, strategy)) {
    stages.push_back({.layers = checkpoint_runs(layers, strategy.recompute, plain, replayed)});
  }
  stages.front().embedding = kept_by(embedding_ops(model.architecture));
  stages.back().head = kept_by(head_ops(model.architecture));
  if (!strategy.deallocate_outputs) {
    using namespace symbols;
    const Monomial boundary = s * b * h * size_of(model.architecture.kernels.residual_dtype);
    const Bytes output(Expr(boundary * share(Placement::boundary, sharding)).evaluate(letters));
    for (std::size_t i = 0; i + 1 < stages.size(); ++i) stages[i].output = output;
  }
  return stages;
}

}  // namespace headroom

#include "headroom/memory/step.hpp"

namespace headroom {
namespace {

// How far a backward pass through a stage takes what is alive above what its forward pass left: the change at its
// worst moment. Nothing, when no replay outweighs what was freed before it.
Activations backward_excess(const StageActivations& stage) {
  Activations worst;
  Activations freed{.head = stage.head - stage.head_deferred};
  const auto replay = [&](const CheckpointRun& run, const Activations& freed_before) {
    const Activations at_replay = Activations{.replay = run.replayed} - freed_before;
    if (total(at_replay) > total(worst)) worst = at_replay;
  };
  for (std::size_t i = stage.layers.size(); i-- > 0;) {
    const CheckpointRun& run = stage.layers[i];
    replay(run, freed);
    const Bytes of_each = run.kept - run.deferred;
    // Where each leaves more than it kept, the last replay of the run is the worst.
    if (of_each < Bytes(0)) {
      Activations freed_before = freed;
      freed_before.layers += static_cast<double>(run.count - 1) * of_each;
      replay(run, freed_before);
    }
    freed.layers += static_cast<double>(run.count) * of_each;
  }
  return worst;
}

Activations deferred(const StageActivations& stage) {
  Activations held{.embedding = stage.embedding_deferred, .head = stage.head_deferred};
  for (const CheckpointRun& run : stage.layers) {
    held.layers += static_cast<double>(run.count) * run.deferred;
  }
  return held;
}

}  // namespace

PassActivations pass_activations(const StageActivations& stage) {
  return {.left = {.layers = layers_kept(stage),
                   .embedding = stage.embedding,
                   .head = stage.head,
                   .outputs = stage.output,
                   .replay = {}},
          .excess = backward_excess(stage),
          .deferred = deferred(stage)};
}

std::vector<PassActivations> pass_activations(const std::vector<StageActivations>& stages,
                                              const ScheduleShape& shape, std::int64_t rank) {
  EXPECTS(std::ssize(stages) == shape.ranks * shape.chunks);
  std::vector<PassActivations> passes;
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    passes.push_back(pass_activations(stages[static_cast<std::size_t>(stage_of(shape, rank, chunk))]));
  }
  return passes;
}

std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& stages,
                                                 const ScheduleShape& shape, std::int64_t rank) {
  return activations_by_step(stages, stages, 0, shape, rank);
}

std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& checkpointed,
                                                 const std::vector<StageActivations>& full,
                                                 std::int64_t window, const ScheduleShape& shape,
                                                 std::int64_t rank) {
  std::vector<StepActivations> steps;
  visit_activations(pass_activations(checkpointed, shape, rank), pass_activations(full, shape, rank), window,
                    shape, rank, [&](const StepActivations& step) { steps.push_back(step); });
  return steps;
}

}  // namespace headroom

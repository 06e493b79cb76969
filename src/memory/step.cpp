#include "headroom/memory/step.hpp"

namespace headroom {
namespace {

struct Excess {
  Activations bytes;
  OpPlace during;
};

// Returns the activations of a pass at one moment, above what the forward pass left or will leave. `part` has
// the current op, and loses the peak's `freed` on top of `freed_before`. `ahead` was fetched from the host
// for the preceding layer, in a backward pass. Nothing is fetched or reduced beside a forward pass.
Activations at_moment(const BackwardPeak& peak, Bytes Activations::*part, const Activations& freed_before,
                      UnitBytes units, Bytes ahead) {
  if (peak.during.pass == OpPass::forward) units.gradients = units.made = ahead = Bytes(0);
  Activations result = Activations{.recompute = peak.recompute,
                                   .gradients = peak.gradients,
                                   .logits = peak.logits,
                                   .gathered = peak.gathered,
                                   .weight_gradients = peak.weight_gradients,
                                   .dequantized_weights = peak.dequantized,
                                   .fetched = peak.fetched + ahead,
                                   .forward_values = peak.forward_values,
                                   .gathered_weights = units.gathered,
                                   .unit_gradients = units.gradients,
                                   .absent_gradients = Bytes(0) - units.made} -
                       freed_before;
  result.*part -= peak.freed;
  return result;
}

// Returns the peak of a backward pass through a stage, above what its forward pass left. Zero if neither a
// recomputation nor an op's memory outweighs what was freed before it. Beside a forward pass, the bytes that
// the forward pass has left so far count as negative `freed`.
Excess backward_excess(const StageActivations& stage, bool in_pairs) {
  Excess worst;
  Bytes highest;
  Activations freed{.head = stage.head - stage.head_deferred};
  Activations freed_at_head;
  if (in_pairs) {
    highest = worst.bytes.embedding = stage.embedding;
    freed.embedding = freed_at_head.embedding = Bytes(0) - stage.embedding;
  }
  std::int64_t of_forward = 0;  // layers that the forward pass has finished
  const auto filled = [&](std::int64_t layers) {
    Bytes sum;
    for (const CheckpointRun& run : stage.layers) {
      sum += static_cast<double>(std::min(run.count, layers)) * run.kept;
      layers -= std::min(run.count, layers);
    }
    return sum;
  };
  const auto consider = [&](const BackwardPeak& peak, Bytes Activations::*part, const Activations& before,
                            const UnitBytes& units = {}, Bytes ahead = {}) {
    const Activations excess = at_moment(peak, part, before, units, ahead);
    if (total(excess) <= highest) return;
    highest = total(excess);
    worst = {excess, peak.during};
  };
  const auto consider_both = [&](const PassPeaks& peaks, Bytes Activations::*part, const Activations& before,
                                 const UnitBytes& units = {}, Bytes ahead = {}) {
    consider(peaks.backward, part, before, units, ahead);
    if (peaks.forward.during.op != nowhere) consider(peaks.forward, part, before, units, ahead);
  };
  // A search evaluates this for every stage of every strategy. If the stack counts nothing during ops, one
  // total tells whether a moment matters: the terms of total() that are not zero, in its order.
  const auto recompute = [&](const CheckpointRun& run, const Activations& before, const UnitBytes& units,
                             Bytes ahead) {
    if (run.peaks.backward.during.op != nowhere) {
      consider_both(run.peaks, &Activations::layers, before, units, ahead);
    } else if (units != UnitBytes{} || run.on_host + ahead > Bytes(0)) {
      consider({.recompute = run.recomputed, .fetched = run.on_host}, &Activations::layers, before, units,
               ahead);
    } else if (Bytes(0) - before.layers - before.embedding - before.head + run.recomputed > highest) {
      consider({.recompute = run.recomputed}, &Activations::layers, before);
    }
  };
  if (stage.head_peaks.backward.during.op != nowhere || stage.head_units != UnitBytes{}) {
    const Bytes ahead = stage.layers.empty() ? Bytes(0) : stage.layers.back().on_host;
    consider_both(stage.head_peaks, &Activations::head, freed_at_head, stage.head_units, ahead);
  }
  for (std::size_t i = stage.layers.size(); i-- > 0;) {
    const CheckpointRun& run = stage.layers[i];
    // Fetched during this layer, for the one before it.
    const Bytes for_first = i > 0 ? stage.layers[i - 1].on_host : Bytes(0);
    const Bytes of_each = run.kept - run.deferred;
    const auto with_freed = [&](std::int64_t layers) {
      Activations freed_before = freed;
      freed_before.layers += static_cast<double>(layers) * of_each;
      if (in_pairs) freed_before.layers -= filled(of_forward + layers + 1);
      return freed_before;
    };
    recompute(run, with_freed(0), run.units.last, run.count > 1 ? run.on_host : for_first);
    for (std::int64_t layer = 1; in_pairs && layer < run.count; ++layer)
      recompute(run, with_freed(layer), run.units.inner, run.on_host);
    // The last layer's gradients are reduced beside the one before it, and the first layer has another unit
    // before it.
    if ((run.units != RunUnits{} || for_first > run.on_host) && run.count > 1) {
      recompute(run, with_freed(1), run.units.inner, run.count > 2 ? run.on_host : for_first);
      recompute(run, with_freed(run.count - 1), run.units.first, for_first);
    }
    // If each layer leaves more than it saved, the last recomputation of the run is the peak.
    if (of_each < Bytes(0)) recompute(run, with_freed(run.count - 1), run.units.first, for_first);
    freed.layers += static_cast<double>(run.count) * of_each;
    of_forward += run.count;
  }
  if (in_pairs) {  // all layers, and the output layer before the embedding
    freed.layers -= layers_kept(stage);
    freed.head -= stage.head;
  }
  if (stage.embedding_peaks.backward.during.op != nowhere || freed.layers + freed.head < Bytes(0) ||
      stage.embedding_units != UnitBytes{}) {
    consider_both(stage.embedding_peaks, &Activations::embedding, freed, stage.embedding_units);
  }
  if (stage.grown_gradients > Bytes(0) || stage.end_units != UnitBytes{}) {
    Activations freed_at_end = freed;
    freed_at_end.embedding += stage.embedding - stage.embedding_deferred;
    consider({}, &Activations::embedding, freed_at_end, stage.end_units);
    // Until the step, all gradients are there and no activations.
    consider({}, &Activations::embedding, freed_at_end, {.made = stage.grown_gradients});
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

PassActivations pass_activations(const StageActivations& stage, bool in_pairs) {
  const Excess excess = backward_excess(stage, false);
  const Excess paired = in_pairs ? backward_excess(stage, true) : Excess{};
  Bytes on_host;
  for (const CheckpointRun& run : stage.layers) on_host += static_cast<double>(run.count) * run.on_host;
  return {.left = {.layers = layers_kept(stage),
                   .embedding = stage.embedding,
                   .head = stage.head,
                   .outputs = stage.output,
                   .absent_gradients = stage.grown_gradients},
          .excess = excess.bytes,
          .during = excess.during,
          .paired_excess = paired.bytes,
          .paired_during = paired.during,
          .deferred = deferred(stage),
          .on_host = on_host};
}

std::vector<PassActivations> pass_activations(const std::vector<StageActivations>& stages,
                                              const ScheduleShape& shape, std::int64_t rank) {
  EXPECTS(std::ssize(stages) == stages_of(shape));
  std::vector<PassActivations> passes;
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    passes.push_back(
        pass_activations(stages[static_cast<std::size_t>(stage_of(shape, rank, chunk))], shape.in_pairs));
  }
  return passes;
}

std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& stages,
                                                 const PipelineOrder& order, std::int64_t rank) {
  return activations_by_step(stages, stages, 0, order, rank);
}

std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& checkpointed,
                                                 const std::vector<StageActivations>& full,
                                                 std::int64_t window, const PipelineOrder& order,
                                                 std::int64_t rank) {
  const ScheduleShape& shape = order.shape();
  std::vector<StepActivations> steps;
  visit_activations(pass_activations(checkpointed, shape, rank), pass_activations(full, shape, rank), window,
                    order, rank, Walk::every_step,
                    [&](const StepActivations& step) { steps.push_back(step); });
  return steps;
}

}  // namespace headroom

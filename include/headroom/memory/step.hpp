// What is alive on a pipeline rank before, during and after each step of its schedule.
//
// A forward pass leaves what its virtual stage keeps. A backward pass first lets go of the head, then goes through the
// layers from the last, making a checkpoint's working set again before it frees what the checkpoint kept. Where weights
// have passes of their own, it leaves what those need, and they free it. Where the training stack counts what else is
// alive during an op, its worst moment may be during any op of the head, of a layer or of the embedding.
//
// Where passes run in pairs (ScheduleShape::in_pairs), a forward pass goes through its first layer while the backward pass beside it
// goes through its last, and so on: what the one leaves takes the place of what the other frees, one layer behind, and the head of the
// one comes after all layers of the other [Megatron-LM, core/models/common/model_chunk_schedule_plan.py].
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "headroom/memory/stage.hpp"
#include "headroom/schedule/window.hpp"

namespace headroom {

// What is alive at one moment. The parts add up to the total.
struct Activations {
  Bytes layers;
  Bytes embedding;
  Bytes head;
  Bytes outputs;    // sent outputs that were not deallocated
  Bytes recompute;  // working set of the checkpoint under recomputation
  // Of the op under backward, where the training stack counts them (memory/backward.hpp).
  Bytes gradients;  // of activations
  Bytes logits;     // gradients of logits, in the precision of the output layer
  Bytes gathered;   // inputs and gradients of all sequence shards
  Bytes weight_gradients;
  Bytes dequantized_weights;
  Bytes fetched;         // from the host, for the layer under way and the one before it
  Bytes forward_values;  // of a forward pass or a recomputation, that nothing keeps (memory/forward.hpp)
  // Of weights and gradients that data-parallel ranks divide (memory/units.hpp), whole for the unit under way.
  Bytes gathered_weights;
  Bytes unit_gradients;
  friend bool operator==(const Activations&, const Activations&) = default;

  friend constexpr Activations operator+(const Activations& x, const Activations& y) {
    return {x.layers + y.layers,
            x.embedding + y.embedding,
            x.head + y.head,
            x.outputs + y.outputs,
            x.recompute + y.recompute,
            x.gradients + y.gradients,
            x.logits + y.logits,
            x.gathered + y.gathered,
            x.weight_gradients + y.weight_gradients,
            x.dequantized_weights + y.dequantized_weights,
            x.fetched + y.fetched,
            x.forward_values + y.forward_values,
            x.gathered_weights + y.gathered_weights,
            x.unit_gradients + y.unit_gradients};
  }
  friend constexpr Activations operator-(const Activations& x, const Activations& y) {
    return {x.layers - y.layers,
            x.embedding - y.embedding,
            x.head - y.head,
            x.outputs - y.outputs,
            x.recompute - y.recompute,
            x.gradients - y.gradients,
            x.logits - y.logits,
            x.gathered - y.gathered,
            x.weight_gradients - y.weight_gradients,
            x.dequantized_weights - y.dequantized_weights,
            x.fetched - y.fetched,
            x.forward_values - y.forward_values,
            x.gathered_weights - y.gathered_weights,
            x.unit_gradients - y.unit_gradients};
  }
  friend constexpr Activations operator*(double k, const Activations& x) {
    return {k * x.layers,           k * x.embedding,           k * x.head,    k * x.outputs,
            k * x.recompute,        k * x.gradients,           k * x.logits,  k * x.gathered,
            k * x.weight_gradients, k * x.dequantized_weights, k * x.fetched, k * x.forward_values,
            k * x.gathered_weights, k * x.unit_gradients};
  }
};

constexpr Bytes total(const Activations& parts) {
  return parts.layers + parts.embedding + parts.head + parts.outputs + parts.recompute + parts.gradients +
         parts.logits + parts.gathered + parts.weight_gradients + parts.dequantized_weights + parts.fetched +
         parts.forward_values + parts.gathered_weights + parts.unit_gradients;
}

struct StepActivations {
  Step step;
  bool stored = false;  // in full, by the rank's window
  // forward: at its end; backward: at its start, during the recomputation that takes the most, or at its end, when
  // all is held for a pass for weights; backward_weight: at its start
  Activations highest;
  Activations after;
  OpPlace
      during;  // the op of a backward pass during which it is highest, where the stack counts such moments
  friend bool operator==(const StepActivations&, const StepActivations&) = default;
};

// What passes through one virtual stage do to a rank's memory.
struct PassActivations {
  Activations left;    // by a forward pass
  Activations excess;  // of a backward pass at its worst moment above what was alive before it, if any
  OpPlace during;      // of its worst moment
  // The same where a forward pass through a stage like this one runs beside it, above what was alive before both; only where passes
  // run in pairs.
  Activations paired_excess;
  OpPlace paired_during;
  Activations deferred;  // by a backward pass, until the pass for weights of its own, where there is one
  Bytes on_host;         // that a forward pass leaves there, until the backward pass
  friend bool operator==(const PassActivations&, const PassActivations&) = default;
};

PassActivations pass_activations(const StageActivations& stage, bool in_pairs = false);

// The excess of a backward pass where a forward pass through another virtual stage runs beside it. Layers of that which leave more than
// those that go are counted from the start.
constexpr Activations excess_beside(const PassActivations& backward, const PassActivations& forward) {
  Activations excess = backward.paired_excess;
  excess.layers += std::max(Bytes(0), forward.left.layers - backward.left.layers);
  excess.embedding += forward.left.embedding - backward.left.embedding;
  return excess;
}

// Of the m virtual stages of a rank; `stages` are the p m of the model, in order.
std::vector<PassActivations> pass_activations(const std::vector<StageActivations>& stages,
                                              const ScheduleShape& shape, std::int64_t rank);

// Calls visit(StepActivations) for every step of a rank, in order. The rank stores up to `window` passes in full:
// they take what `full` says, and the others what `checkpointed` says.
template <class Visit>
void visit_activations(const std::vector<PassActivations>& checkpointed,
                       const std::vector<PassActivations>& full, std::int64_t window,
                       const ScheduleShape& shape, std::int64_t rank, Visit visit) {
  EXPECTS(window == 0 || admits_window(shape.kind));
  // Live counts rather than running sums, so that every moment's bytes are exact.
  const std::array<const std::vector<PassActivations>*, 2> kinds{&checkpointed, &full};
  std::array<std::vector<std::int64_t>, 2> alive;
  for (auto& counts : alive) counts.assign(static_cast<std::size_t>(shape.chunks), 0);
  std::vector<std::int64_t> deferred(static_cast<std::size_t>(shape.chunks), 0);
  Activations now;
  const PassActivations* beside = nullptr;  // of the forward pass under way where a backward pass starts
  visit_windowed_steps(shape, rank, window, [&](const Step& step, bool stored) {
    const auto chunk = static_cast<std::size_t>(step.chunk);
    const PassActivations& pass = (*kinds[stored ? 1 : 0])[chunk];
    const Activations before = now;
    const bool joins = shape.in_pairs && step.beside;
    if (step.pass == Pass::backward_weight) {
      --deferred[chunk];
    } else {
      alive[stored ? 1 : 0][chunk] += step.pass == Pass::forward ? 1 : -1;
      if (step.pass == Pass::backward && has_weight_passes(shape) && !step.whole) ++deferred[chunk];
    }
    now = {};
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      for (std::size_t i = 0; i < alive[kind].size(); ++i) {
        if (alive[kind][i] > 0) now = now + static_cast<double>(alive[kind][i]) * (*kinds[kind])[i].left;
      }
    }
    for (std::size_t i = 0; i < deferred.size(); ++i) {
      if (deferred[i] > 0) now = now + static_cast<double>(deferred[i]) * checkpointed[i].deferred;
    }
    StepActivations result{.step = step, .stored = stored, .highest = now, .after = now};
    if (joins && step.pass == Pass::forward) {
      beside = &pass;
      now = result.highest = result.after = before;
    } else if (step.pass == Pass::backward) {
      const Activations worst = before + (joins ? excess_beside(pass, *beside) : pass.excess);
      if (total(worst) >= total(now)) {
        result.highest = worst;
        result.during = joins ? pass.paired_during : pass.during;
      }
    }
    if (step.pass == Pass::backward_weight) result.highest = before;
    visit(result);
  });
}

// The steps as values: 2 n m of them, or 3 n m with passes for weights.
std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& stages,
                                                 const ScheduleShape& shape, std::int64_t rank);
std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& checkpointed,
                                                 const std::vector<StageActivations>& full,
                                                 std::int64_t window, const ScheduleShape& shape,
                                                 std::int64_t rank);

}  // namespace headroom

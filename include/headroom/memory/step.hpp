// Memory in use on a pipeline rank before, during and after each step of its schedule.
//
// A forward pass leaves what its virtual stage saves. A backward pass first frees the output layer's
// activations, then goes through the layers from the last. It recomputes a checkpoint's working set before it
// frees the checkpoint. With separate weight-gradient passes, a backward pass leaves what those passes need,
// and they free it. If the training stack counts memory during ops, the peak may be during any op of the
// output layer, of a layer or of the embedding.
//
// If passes run in pairs (ScheduleShape::in_pairs), a forward pass goes through its first layer while the
// backward pass beside it goes through its last, and so on. What the forward pass leaves takes the place of
// what the backward pass frees, one layer behind. The output layer of the one pass comes after all layers of
// the other [Megatron-LM, core/models/common/model_chunk_schedule_plan.py].
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "headroom/memory/stage.hpp"
#include "headroom/schedule/window.hpp"

namespace headroom {

// Effect of passes through one virtual stage on a rank's memory.
struct PassActivations {
  Activations left;    // left by a forward pass
  Activations excess;  // peak of a backward pass above its start, if any
  OpPlace during;      // op at that peak
  // Peak of a backward pass with a forward pass of an equal stage beside it, above what was in use before
  // both. Set only if passes run in pairs.
  Activations paired_excess;
  OpPlace paired_during;
  Activations deferred;  // held for a separate weight-gradient pass, if any
  Bytes on_host;         // left on the host from forward to backward pass
  friend bool operator==(const PassActivations&, const PassActivations&) = default;
};

PassActivations pass_activations(const StageActivations& stage, bool in_pairs = false);

// Returns the excess of a backward pass with a forward pass of another virtual stage beside it. If the
// forward pass's layers leave more than the backward pass's layers free, the difference counts from the
// start.
constexpr Activations excess_beside(const PassActivations& backward, const PassActivations& forward) {
  Activations excess = backward.paired_excess;
  excess.layers += std::max(Bytes(0), forward.left.layers - backward.left.layers);
  excess.embedding += forward.left.embedding - backward.left.embedding;
  return excess;
}

// Returns the effects of passes through a rank's m virtual stages. `stages` are the p m of the model, in
// order.
std::vector<PassActivations> pass_activations(const std::vector<StageActivations>& stages,
                                              const ScheduleShape& shape, std::int64_t rank);

// Calls visit(StepActivations) for the steps of a rank that `walk` names, in order. The rank saves up to
// `window` passes in full. Such passes do what `full` says, the others what `checkpointed` says.
template <class Visit>
void visit_activations(const std::vector<PassActivations>& checkpointed,
                       const std::vector<PassActivations>& full, std::int64_t window,
                       const PipelineOrder& order, std::int64_t rank, Walk walk, Visit visit) {
  const ScheduleShape& shape = order.shape();
  EXPECTS(window == 0 || admits_window(shape.kind));
  // Live counts rather than running sums, so that every moment's bytes are exact.
  const std::array<const std::vector<PassActivations>*, 2> kinds{&checkpointed, &full};
  std::array<std::vector<std::int64_t>, 2> alive;
  for (auto& counts : alive) counts.assign(static_cast<std::size_t>(shape.chunks), 0);
  std::vector<std::int64_t> deferred(static_cast<std::size_t>(shape.chunks), 0);
  Activations now;
  const PassActivations* beside = nullptr;  // the forward pass in progress when a backward pass starts
  visit_windowed_steps(order, rank, window, walk, [&](const Step& step, bool stored) {
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

// Returns the steps as values: 2 n m of them, or 3 n m with weight-gradient passes.
std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& stages,
                                                 const PipelineOrder& order, std::int64_t rank);
std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& checkpointed,
                                                 const std::vector<StageActivations>& full,
                                                 std::int64_t window, const PipelineOrder& order,
                                                 std::int64_t rank);

}  // namespace headroom

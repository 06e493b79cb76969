// What is alive on a pipeline rank before, during and after each step of its schedule.
//
// A forward pass leaves what its stage chunk keeps. A backward pass first lets go of the head, then goes through the
// layers from the last, making a checkpoint's working set again before it frees what the checkpoint kept.
#pragma once

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
  Bytes outputs;  // sent outputs that were not deallocated
  Bytes replay;   // working set of the checkpoint under replay
  friend bool operator==(const Activations&, const Activations&) = default;

  friend constexpr Activations operator+(const Activations& x, const Activations& y) {
    return {x.layers + y.layers, x.embedding + y.embedding, x.head + y.head, x.outputs + y.outputs,
            x.replay + y.replay};
  }
  friend constexpr Activations operator-(const Activations& x, const Activations& y) {
    return {x.layers - y.layers, x.embedding - y.embedding, x.head - y.head, x.outputs - y.outputs,
            x.replay - y.replay};
  }
  friend constexpr Activations operator*(double k, const Activations& x) {
    return {k * x.layers, k * x.embedding, k * x.head, k * x.outputs, k * x.replay};
  }
};

constexpr Bytes total(const Activations& parts) {
  return parts.layers + parts.embedding + parts.head + parts.outputs + parts.replay;
}

struct StepActivations {
  Step step;
  bool stored = false;  // in full, by the rank's window
  Activations
      highest;  // forward: at its end; backward: at its start, or during the replay that takes the most
  Activations after;
  friend bool operator==(const StepActivations&, const StepActivations&) = default;
};

// What passes through one stage chunk do to a rank's memory.
struct PassActivations {
  Activations left;    // by a forward pass
  Activations excess;  // of a backward pass at its worst moment above what was alive before it, if any
  friend bool operator==(const PassActivations&, const PassActivations&) = default;
};

PassActivations pass_activations(const StageActivations& stage);

// Of the m stage chunks of a rank; `stages` are the p m of the model, in order.
std::vector<PassActivations> pass_activations(const std::vector<StageActivations>& stages,
                                              const ScheduleShape& shape, std::int64_t rank);

// Calls visit(StepActivations) for every step of a rank, in order. The rank stores up to `window` passes in full:
// they take what `full` says, and the others what `checkpointed` says.
template <class Visit>
void visit_activations(const std::vector<PassActivations>& checkpointed,
                       const std::vector<PassActivations>& full, std::int64_t window,
                       const ScheduleShape& shape, std::int64_t rank, Visit visit) {
  // Live counts rather than running sums, so that every moment's bytes are exact.
  const std::array<const std::vector<PassActivations>*, 2> kinds{&checkpointed, &full};
  std::array<std::vector<std::int64_t>, 2> alive;
  for (auto& counts : alive) counts.assign(static_cast<std::size_t>(shape.chunks), 0);
  Activations now;
  visit_windowed_steps(shape, rank, window, [&](const Step& step, bool stored) {
    const auto chunk = static_cast<std::size_t>(step.chunk);
    const PassActivations& pass = (*kinds[stored ? 1 : 0])[chunk];
    const Activations at_worst = now + pass.excess;
    alive[stored ? 1 : 0][chunk] += step.pass == Pass::forward ? 1 : -1;
    now = {};
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      for (std::size_t i = 0; i < alive[kind].size(); ++i) {
        if (alive[kind][i] > 0) now = now + static_cast<double>(alive[kind][i]) * (*kinds[kind])[i].left;
      }
    }
    visit(StepActivations{step, stored, step.pass == Pass::forward ? now : at_worst, now});
  });
}

// The steps as values: 2 n m of them.
std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& stages,
                                                 const ScheduleShape& shape, std::int64_t rank);
std::vector<StepActivations> activations_by_step(const std::vector<StageActivations>& checkpointed,
                                                 const std::vector<StageActivations>& full,
                                                 std::int64_t window, const ScheduleShape& shape,
                                                 std::int64_t rank);

}  // namespace headroom

// The order of forward and backward steps on each pipeline rank: GPipe, 1F1B (PipeDream-flush) and Megatron's
// interleaved 1F1B [N21 sections 2.2.1 and 2.2.2; Megatron-LM, core/pipeline_parallel/schedules.py], and ZB-H1, which
// is 1F1B with the gradients of weights in passes of their own [arXiv 2401.10241, section 2.1 and figure 2].
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "headroom/parallel/strategy.hpp"

namespace headroom {

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::one_forward_one_backward;
  std::int64_t ranks = 1;         // p
  std::int64_t chunks = 1;        // m, virtual stages a rank
  std::int64_t microbatches = 1;  // n
  std::int64_t group =
      0;  // microbatches that go through a chunk in a row where interleaved; 0: p, which divides n
  friend bool operator==(const ScheduleShape&, const ScheduleShape&) = default;
};

constexpr std::int64_t group_size(const ScheduleShape& shape) {
  return shape.group > 0 ? shape.group : shape.ranks;
}

constexpr bool has_weight_passes(const ScheduleShape& shape) { return has_weight_passes(shape.kind); }

// backward: gradients of inputs and weights in one pass or, where weights have passes of their own, of inputs only.
enum class Pass : std::uint8_t { forward, backward, backward_weight };

// One step of a rank: one microbatch through one of its virtual stages.
struct Step {
  Pass pass = Pass::forward;
  std::int64_t microbatch = 0;
  std::int64_t chunk = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

ScheduleShape schedule_shape(const Strategy& strategy, std::int64_t microbatches);

// Forward passes that a rank runs before its first backward.
std::int64_t warm_up_passes(const ScheduleShape& shape, std::int64_t rank);

// How many backward passes a rank runs ahead of the passes for their weights, where those are apart: the ranks before
// it. A forward pass, its backward and what is left for its weights are together as many in flight on all ranks as
// 1F1B has on the first.
constexpr std::int64_t deferred_weight_passes(const ScheduleShape& shape, std::int64_t rank) {
  return has_weight_passes(shape) ? rank : 0;
}

// What decides a rank's next step beside what it has run.
struct RankOrder {
  std::int64_t ahead = 0;     // warm_up_passes
  std::int64_t deferred = 0;  // deferred_weight_passes
};

RankOrder order_of(const ScheduleShape& shape, std::int64_t rank);

// The k-th forward or backward pass of a rank. Groups of microbatches, the last of which may be smaller, go through chunk
// after chunk, forward in the order of the model, backward against it; with one chunk that is one microbatch after the
// other.
constexpr Step pass_of_rank(const ScheduleShape& shape, Pass pass, std::int64_t k) {
  const std::int64_t group = group_size(shape);
  const std::int64_t first = k / (group * shape.chunks) * group;
  const std::int64_t size = std::min(group, shape.microbatches - first);
  const std::int64_t place = k - first * shape.chunks;
  const std::int64_t chunk = place / size;
  return {.pass = pass,
          .microbatch = first + place % size,
          .chunk = pass == Pass::forward ? chunk : shape.chunks - 1 - chunk};
}

// How many passes a rank has run of each kind.
struct Progress {
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;
  std::int64_t weights = 0;
  friend bool operator==(const Progress&, const Progress&) = default;
};

constexpr bool finished(const ScheduleShape& shape, const Progress& done) {
  return (has_weight_passes(shape) ? done.weights : done.backwards) == shape.microbatches * shape.chunks;
}

// The step a rank runs next: forward passes until its warm-up waits for their backward, then one of each in turn, then
// what backward passes are left. A pass for weights comes as soon as more of them than the rank defers are left over,
// and last when nothing else is. Not for a rank that has finished.
constexpr Step next_step(const ScheduleShape& shape, const RankOrder& order, const Progress& done) {
  const std::int64_t passes = shape.microbatches * shape.chunks;
  if (has_weight_passes(shape) &&
      (done.backwards == passes || done.backwards - done.weights > order.deferred)) {
    return pass_of_rank(shape, Pass::backward_weight, done.weights);
  }
  const bool forward = done.forwards < passes && done.forwards <= done.backwards + order.ahead;
  return forward ? pass_of_rank(shape, Pass::forward, done.forwards)
                 : pass_of_rank(shape, Pass::backward, done.backwards);
}

constexpr void count(Progress& done, Pass pass) {
  switch (pass) {
    case Pass::forward: ++done.forwards; break;
    case Pass::backward: ++done.backwards; break;
    case Pass::backward_weight: ++done.weights; break;
  }
}

// Calls visit(Step) for every step of a rank, in order: 2 n m of them, or 3 n m with passes for weights.
template <class Visit>
void visit_steps(const ScheduleShape& shape, std::int64_t rank, Visit visit) {
  const RankOrder order = order_of(shape, rank);
  for (Progress done; !finished(shape, done);) {
    const Step step = next_step(shape, order, done);
    visit(step);
    count(done, step.pass);
  }
}

// The steps of a rank as values.
std::vector<Step> steps_of_rank(const ScheduleShape& shape, std::int64_t rank);

// The virtual stage, counted along the model, that a rank holds as its c-th: c p + rank.
constexpr std::int64_t stage_of(const ScheduleShape& shape, std::int64_t rank, std::int64_t chunk) {
  return chunk * shape.ranks + rank;
}

// The same schedule cut down to as many microbatches as it takes for every rank to have seen every combination of
// live chunks: warm-up, whole periods of the steady state and cool-down. Steps repeat with a period of a
// group of microbatches (p of them) once all ranks are warm, until the last group, so what is alive at the same time does not depend on n beyond that. GPipe
// has no steady state and is returned as it is.
ScheduleShape same_liveness(const ScheduleShape& shape);

// The most forward passes alive at once on a rank, counted in virtual stages: m of them are one microbatch's worth.
std::int64_t chunks_in_flight(const ScheduleShape& shape, std::int64_t rank);

template <>
inline constexpr std::array<Spelling<Pass>, 3> spellings<Pass>{{
    {Pass::forward, "forward"},
    {Pass::backward, "backward"},
    {Pass::backward_weight, "backward_weight"},
}};

}  // namespace headroom

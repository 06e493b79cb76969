// The order of forward and backward steps on each pipeline rank: GPipe, 1F1B (PipeDream-flush) and Megatron's
// interleaved 1F1B [N21 sections 2.2.1 and 2.2.2; Megatron-LM, core/pipeline_parallel/schedules.py], GPipe over several chunks, one
// after the other [torch, ScheduleLoopedBFS], ZB-H1 and ZB-H2, which are 1F1B with the gradients of weights in passes
// of their own [arXiv 2401.10241, section 2.1 and figures 2 and 3], and those of rounds.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/schedule/rounds.hpp"

namespace headroom {

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::one_forward_one_backward;
  std::int64_t ranks = 1;         // p
  std::int64_t chunks = 1;        // virtual stages a rank: m, of each copy of the model that ranks hold
  std::int64_t microbatches = 1;  // n
  std::int64_t group =
      0;  // microbatches that go through a chunk in a row where interleaved; 0: p, which divides n
  // 1F1B and interleaved: once warm, a forward pass runs beside the backward pass after it, and one more is ahead.
  bool in_pairs = false;
  friend bool operator==(const ScheduleShape&, const ScheduleShape&) = default;
};

constexpr std::int64_t group_size(const ScheduleShape& shape) {
  if (shape.kind == ScheduleKind::looped_bfs) return shape.microbatches;
  return shape.group > 0 ? shape.group : shape.ranks;
}

constexpr bool has_weight_passes(const ScheduleShape& shape) { return has_weight_passes(shape.kind); }

// Whether passes run beside each other.
constexpr bool overlaps_passes(const ScheduleShape& shape) {
  return overlaps_passes(shape.kind) || shape.in_pairs;
}

// Whether the times of a rank's passes do not say how long a pipeline takes, but a replay of their order alone.
constexpr bool needs_replay(const ScheduleShape& shape) {
  return has_weight_passes(shape) || overlaps_passes(shape);
}

// Virtual stages of the model.
constexpr std::int64_t stages_of(const ScheduleShape& shape) {
  return shape.ranks * shape.chunks / model_copies(shape.kind);
}

// Microbatches that go through each chunk: those of its copy of the model.
constexpr std::int64_t microbatches_of_chunk(const ScheduleShape& shape) {
  return shape.microbatches / model_copies(shape.kind);
}

// One step of a rank: one microbatch of a chunk, counted in the copy of the model that the chunk is of, through it.
struct Step {
  Pass pass = Pass::forward;
  std::int64_t microbatch = 0;
  std::int64_t chunk = 0;
  bool whole = false;   // as in RoundMove
  bool beside = false;  // as in RoundMove: the step after this one, or before it, has it too
  friend bool operator==(const Step&, const Step&) = default;
};

ScheduleShape schedule_shape(const Strategy& strategy, std::int64_t microbatches);

// Forward passes that a rank runs before its first backward. Not of a schedule that runs in rounds.
std::int64_t warm_up_passes(const ScheduleShape& shape, std::int64_t rank);

// What decides a rank's next step beside what it has run: how far it is ahead, or its rounds.
struct RankOrder {
  std::int64_t ahead = 0;  // warm_up_passes
  // Backward passes that a rank runs ahead of the passes for their weights, where those are apart. ZB-H1: as many as there
  // are ranks before it, so that a forward pass, its backward and what is left for its weights are together as many in
  // flight on all ranks as 1F1B has on the first; ZB-H2: twice as many.
  std::int64_t deferred = 0;
  std::vector<Round> rounds;
};

RankOrder order_of(const ScheduleShape& shape, std::int64_t rank);

// The k-th forward or backward pass of a rank. Groups of microbatches, the last of which may be smaller, go through chunk
// after chunk, forward in the order of the model, backward against it; with one chunk that is one microbatch after the
// other. Breadth first, the last microbatch comes back first.
constexpr Step pass_of_rank(const ScheduleShape& shape, Pass pass, std::int64_t k) {
  const std::int64_t group = group_size(shape);
  const std::int64_t first = k / (group * shape.chunks) * group;
  const std::int64_t size = std::min(group, shape.microbatches - first);
  const std::int64_t place = k - first * shape.chunks;
  const std::int64_t chunk = place / size;
  const std::int64_t microbatch = first + place % size;
  const bool comes_back = shape.kind == ScheduleKind::looped_bfs && pass == Pass::backward;
  return {.pass = pass,
          .microbatch = comes_back ? shape.microbatches - 1 - microbatch : microbatch,
          .chunk = pass == Pass::forward ? chunk : shape.chunks - 1 - chunk};
}

// How many passes a rank has run of each kind. Where it runs in rounds, also by chunk, and where in them it is.
struct Progress {
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;
  std::int64_t weights = 0;
  std::array<std::array<std::int64_t, 2>, 3> of_chunk{};  // by pass
  std::size_t round = 0;
  std::int64_t turn = 0;  // of the round
  std::size_t move = 0;
  friend bool operator==(const Progress&, const Progress&) = default;
};

constexpr bool finished(const ScheduleShape& shape, const RankOrder& order, const Progress& done) {
  if (!order.rounds.empty()) return done.round == order.rounds.size();
  return (has_weight_passes(shape) ? done.weights : done.backwards) == shape.microbatches * shape.chunks;
}

// The step a rank runs next: forward passes until its warm-up waits for their backward, then one of each in turn, then
// what backward passes are left. A pass for weights comes as soon as more of them than the rank defers are left over,
// and last when nothing else is. Or the next move of its rounds. Not for a rank that has finished.
constexpr Step next_step(const ScheduleShape& shape, const RankOrder& order, const Progress& done) {
  if (!order.rounds.empty()) {
    const RoundMove& move = order.rounds[done.round].moves[done.move];
    const auto pass = static_cast<std::size_t>(move.pass);
    return {.pass = move.pass,
            .microbatch = done.of_chunk[pass][static_cast<std::size_t>(move.chunk)],
            .chunk = move.chunk,
            .whole = move.whole,
            .beside = move.beside};
  }
  const std::int64_t passes = shape.microbatches * shape.chunks;
  if (has_weight_passes(shape) &&
      (done.backwards == passes || done.backwards - done.weights > order.deferred)) {
    return pass_of_rank(shape, Pass::backward_weight, done.weights);
  }
  const bool forward = done.forwards < passes && done.forwards <= done.backwards + order.ahead;
  Step step = forward ? pass_of_rank(shape, Pass::forward, done.forwards)
                      : pass_of_rank(shape, Pass::backward, done.backwards);
  step.beside = shape.in_pairs && done.forwards == done.backwards + order.ahead + (forward ? 0 : 1);
  return step;
}

// Counts a step that a rank has run.
constexpr void count(const ScheduleShape& shape, const RankOrder& order, Progress& done, const Step& step) {
  switch (step.pass) {
    case Pass::forward: ++done.forwards; break;
    case Pass::backward: ++done.backwards; break;
    case Pass::backward_weight: ++done.weights; break;
  }
  if (order.rounds.empty()) return;
  const auto chunk = static_cast<std::size_t>(step.chunk);
  ++done.of_chunk[static_cast<std::size_t>(step.pass)][chunk];
  if (step.whole) ++done.of_chunk[static_cast<std::size_t>(Pass::backward_weight)][chunk];
  // On to the next move of a microbatch that there is: few of them run as the first of more.
  do {
    const Round& round = order.rounds[done.round];
    if (++done.move < round.moves.size()) continue;
    done.move = 0;
    if (++done.turn < round.times) continue;
    done.turn = 0;
    if (++done.round == order.rounds.size()) return;
  } while (next_step(shape, order, done).microbatch >= microbatches_of_chunk(shape));
}

// Calls visit(Step) for every step of a rank, in order: 2 n m of them, or up to 3 n m with passes for weights.
template <class Visit>
void visit_steps(const ScheduleShape& shape, std::int64_t rank, Visit visit) {
  const RankOrder order = order_of(shape, rank);
  for (Progress done; !finished(shape, order, done);) {
    const Step step = next_step(shape, order, done);
    visit(step);
    count(shape, order, done, step);
  }
}

// The steps of a rank as values.
std::vector<Step> steps_of_rank(const ScheduleShape& shape, std::int64_t rank);

// The virtual stage, counted along the model, that a rank holds as its c-th: c p + rank; in a V the stages go down the
// ranks and come back up. Of two copies of the model, whose stages go down and up, a rank's chunks are in the order of the
// model, so that either half of the ranks does the same.
constexpr std::int64_t stage_of(const ScheduleShape& shape, std::int64_t rank, std::int64_t chunk) {
  if (model_copies(shape.kind) > 1) {
    const std::int64_t mirrored = shape.ranks - 1 - rank;
    return chunk == 0 ? std::min(rank, mirrored) : std::max(rank, mirrored);
  }
  if (runs_in_v(shape.kind)) return chunk == 0 ? rank : 2 * shape.ranks - 1 - rank;
  return chunk * shape.ranks + rank;
}

// How many of each kind a rank holds; `places` are those of all virtual stages of the model.
KindCounts kinds_of_rank(const std::vector<StagePlace>& places, const ScheduleShape& shape,
                         std::int64_t rank);

// Whether a rank holds the first and the last virtual stage, of one copy of the model.
constexpr bool holds_both_ends(const ScheduleShape& shape, std::int64_t rank) {
  return shape.ranks == 1 || (runs_in_v(shape.kind) && rank == 0);
}

// A virtual stage of a copy of the model: the first copy goes down the ranks.
struct PlaceOfCopy {
  std::int64_t copy = 0;
  std::int64_t stage = 0;
  friend bool operator==(const PlaceOfCopy&, const PlaceOfCopy&) = default;
};
constexpr PlaceOfCopy place_of(const ScheduleShape& shape, std::int64_t rank, std::int64_t chunk) {
  const std::int64_t stage = stage_of(shape, rank, chunk);
  return {.copy = model_copies(shape.kind) > 1 && stage != rank ? 1 : 0, .stage = stage};
}
constexpr std::int64_t rank_of(const ScheduleShape& shape, const PlaceOfCopy& place) {
  if (place.copy == 1) return shape.ranks - 1 - place.stage;
  if (runs_in_v(shape.kind)) return std::min(place.stage, 2 * shape.ranks - 1 - place.stage);
  return place.stage % shape.ranks;
}

// The link between a virtual stage and the next one of its copy, named by the rank that it starts from on the way around the
// ranks; none where one rank holds both.
constexpr std::optional<std::int64_t> link_after(const ScheduleShape& shape, const PlaceOfCopy& place) {
  const std::int64_t from = rank_of(shape, place);
  const std::int64_t to = rank_of(shape, {place.copy, place.stage + 1});
  if (from == to) return std::nullopt;
  const bool around = !runs_in_v(shape.kind) && model_copies(shape.kind) == 1;
  return around ? from : std::min(from, to);
}

// The same schedule cut down to as many microbatches as it takes for every rank to have seen every combination of
// live chunks: warm-up, whole periods of the steady state and cool-down. Steps repeat with a period of a
// group of microbatches (p of them) once all ranks are warm, until the last group, so what is alive at the same time does not depend on n beyond that. Schedules
// that run all forward passes first have no steady state and are returned as they are.
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

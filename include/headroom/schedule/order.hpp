// The order of forward and backward passes on each pipeline rank, for these schedules: GPipe, 1F1B
// (PipeDream-flush) and Megatron's interleaved 1F1B [N21 sections 2.2.1 and 2.2.2; Megatron-LM,
// core/pipeline_parallel/schedules.py]; GPipe over several chunks, one after the other [torch,
// ScheduleLoopedBFS]; ZB-H1 and ZB-H2, which are 1F1B with separate weight-gradient passes [arXiv 2401.10241,
// section 2.1 and figures 2 and 3]; and those of rounds.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/schedule/rounds.hpp"
#include "headroom/schedule/shape.hpp"

namespace headroom {

// Returns the shape of a strategy's schedule for the microbatches of a data-parallel rank.
ScheduleShape schedule_shape(const Strategy& strategy, std::int64_t microbatches);

// Returns the forward passes that a rank runs before its first backward pass. Expects a schedule without
// rounds.
std::int64_t warm_up_passes(const ScheduleShape& shape, std::int64_t rank);

// State that decides the next step of a rank, besides the steps that it has run: how far it runs ahead, or
// its rounds.
struct RankOrder {
  std::int64_t ahead = 0;  // warm_up_passes
  // Backward passes that a rank runs ahead of their weight-gradient passes, if these are separate. ZB-H1: the
  // number of ranks before it. Forward, backward and pending weight-gradient passes in flight on a rank then
  // add up to what 1F1B has on the first rank. ZB-H2: twice as many.
  std::int64_t deferred = 0;
  std::vector<Round> rounds;
};

class BuildingBlocks;

// Order of the passes of every rank of a pipeline. V-Half and V-Min lay out all ranks together, once for an
// order and its copies: keep one rather than pass shapes in a loop. Other schedules give the order of each
// rank when it is asked for.
class PipelineOrder {
 public:
  PipelineOrder(const ScheduleShape& shape);  // NOLINT(google-explicit-constructor): a shape has one order
  // Shares what `other` has laid out. Expects a shape with laid_out() like its own.
  PipelineOrder(const ScheduleShape& shape, const PipelineOrder& other);

  [[nodiscard]] const ScheduleShape& shape() const { return shape_; }
  [[nodiscard]] RankOrder of(std::int64_t rank) const;

 private:
  ScheduleShape shape_;
  std::shared_ptr<const BuildingBlocks> blocks_;  // null: nothing is laid out together
};

// Returns the part of a shape that decides what its order lays out for all ranks; nothing if it lays out
// nothing.
std::optional<ScheduleShape> laid_out(const ScheduleShape& shape);

// Returns the k-th forward or backward pass of a rank. Groups of microbatches, the last of which may be
// smaller, go through chunk after chunk: forward in the order of the model, backward against it. With one
// chunk, microbatches follow each other. In breadth-first schedules, the last microbatch comes back first.
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

// Number of passes of each kind that a rank has run. If it runs in rounds, also the passes by chunk and its
// position in the rounds.
struct Progress {
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;
  std::int64_t weights = 0;
  std::array<std::array<std::int64_t, 2>, 3> of_chunk{};  // by pass
  std::size_t round = 0;
  std::int64_t turn = 0;  // repetition of the round
  std::size_t move = 0;
  friend bool operator==(const Progress&, const Progress&) = default;
};

constexpr bool finished(const ScheduleShape& shape, const RankOrder& order, const Progress& done) {
  if (!order.rounds.empty()) return done.round == order.rounds.size();
  return (has_weight_passes(shape) ? done.weights : done.backwards) == shape.microbatches * shape.chunks;
}

// Returns the step that a rank runs next. With rounds, this is their next move. Otherwise the rank runs the
// forward passes of its warm-up, then forward and backward passes in turn, then the remaining backward
// passes. A weight-gradient pass runs as soon as more of them are pending than the rank defers; the rest run
// at the end. Expects a rank that has not finished.
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
  // Skip moves of microbatches that do not exist: few microbatches run as the first of more.
  do {
    const Round& round = order.rounds[done.round];
    if (++done.move < round.moves.size()) continue;
    done.move = 0;
    if (++done.turn < round.times) continue;
    done.turn = 0;
    if (++done.round == order.rounds.size()) return;
  } while (next_step(shape, order, done).microbatch >= microbatches_of_chunk(shape));
}

// Calls visit(Step) for every step of a rank, in order: 2 n m steps, or up to 3 n m with weight-gradient
// passes.
template <class Visit>
void visit_steps(const PipelineOrder& pipeline, std::int64_t rank, Visit visit) {
  const ScheduleShape& shape = pipeline.shape();
  const RankOrder order = pipeline.of(rank);
  for (Progress done; !finished(shape, order, done);) {
    const Step step = next_step(shape, order, done);
    visit(step);
    count(shape, order, done, step);
  }
}

// Returns the steps of a rank, in order.
std::vector<Step> steps_of_rank(const PipelineOrder& order, std::int64_t rank);

// Returns how many layers of each kind a rank holds. `places` are those of all virtual stages of the model.
KindCounts kinds_of_rank(const std::vector<StagePlace>& places, const ScheduleShape& shape,
                         std::int64_t rank);

// Returns the same schedule with only as many microbatches as every rank needs to see every combination of
// live chunks: warm-up, whole periods of the steady state, and cool-down. Once all ranks are warm, steps
// repeat with every group of microbatches (p of them) until the last group. More microbatches therefore
// change nothing in what is alive at once. Schedules that run all forward passes first have no steady state
// and are returned unchanged.
ScheduleShape same_liveness(const ScheduleShape& shape);
PipelineOrder same_liveness(const PipelineOrder& order);

// Returns the largest number of forward passes in flight on a rank, counted in virtual stages: m of them are
// one microbatch.
std::int64_t chunks_in_flight(const ScheduleShape& shape, std::int64_t rank);

}  // namespace headroom

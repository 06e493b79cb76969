// Makespans of schedules whose microbatches go round the ranks, run with no more than it takes. For makespan.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <span>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/schedule/makespan.hpp"

namespace headroom {

// One number for each of several pipelines that run the same schedule with spans of their own.
template <std::size_t Pipelines>
using Lanes = std::array<double, Pipelines>;

// Runs interleaved schedules with no more than it takes to know when each pass ends: of each rank, how many forward and
// backward passes it has run and when the last outputs were sent. Which pass comes next depends on no time, so that
// several pipelines take the same steps.
template <std::size_t Pipelines>
class Interleaved {
 public:
  Interleaved(const ScheduleShape& shape, std::span<const std::span<const ChunkSpans>> pipelines)
      : shape_(shape), passes_(shape.microbatches * shape.chunks) {
    // A rank is at most its warm-up and a pass ahead of those that it feeds, or a group's passes of a chunk.
    kept_ = std::bit_ceil(index(std::min(passes_, (shape.chunks + 1) * group_size(shape)) + 1));
    ends_ = std::make_unique_for_overwrite<Lanes<Pipelines>[]>(2 * kept_ * index(shape.ranks));
    ranks_.resize(index(shape.ranks));
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      ranks_[index(rank)] = {
          .ahead = warm_up_passes(shape, rank),
          .forwards = {.group = group_size(shape), .left = group_size(shape)},
          .backwards = {.chunk = shape.chunks - 1, .group = group_size(shape), .left = group_size(shape)}};
    }
    spans_.resize(index(shape.ranks * shape.chunks));
    for (std::size_t lane = 0; lane < Pipelines; ++lane) {
      // Lanes without a pipeline repeat the last one.
      const std::span<const ChunkSpans> spans = pipelines[std::min(lane, pipelines.size() - 1)];
      for (std::size_t stage = 0; stage < spans_.size(); ++stage) {
        spans_[stage].forward[lane] = spans[stage].forward.count();
        spans_[stage].backward[lane] = spans[stage].backward.count();
      }
    }
  }

  Lanes<Pipelines> makespans() {
    for (std::int64_t left = shape_.ranks; left > 0;) {
      const std::int64_t before = steps_;
      // Forward passes go down the ranks, backward passes up.
      for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) left -= run(rank) ? 1 : 0;
      for (std::int64_t rank = shape_.ranks - 2; rank >= 0; --rank) left -= run(rank) ? 1 : 0;
      EXPECTS(left == 0 || steps_ > before);  // or ranks wait for each other
    }
    Lanes<Pipelines> longest{};
    for (const Rank& rank : ranks_) wait_for(longest, rank.clock);
    return longest;
  }

 private:
  // A rank's passes of one direction: how many it has run, and the chunk of the next with how many of the group's
  // microbatches more go through it before the next chunk's turn.
  struct Passes {
    std::int64_t done = 0;
    std::int64_t chunk = 0;
    std::int64_t group = 0;
    std::int64_t left = 0;
  };
  struct Rank {
    std::int64_t ahead = 0;
    Passes forwards;
    Passes backwards;
    Lanes<Pipelines> clock{};
  };
  struct Span {
    Lanes<Pipelines> forward;
    Lanes<Pipelines> backward;
  };

  // How many microbatches go on together when a group is through: fewer, where fewer are left.
  [[nodiscard]] std::int64_t next_group(const Passes& passes) const {
    return std::min(passes.group, shape_.microbatches - passes.done / shape_.chunks);
  }

  static void wait_for(Lanes<Pipelines>& clock, const Lanes<Pipelines>& arrived) {
    for (std::size_t i = 0; i < Pipelines; ++i) clock[i] = clock[i] > arrived[i] ? clock[i] : arrived[i];
  }
  static void advance(Lanes<Pipelines>& clock, const Lanes<Pipelines>& span) {
    for (std::size_t i = 0; i < Pipelines; ++i) clock[i] += span[i];
  }

  // A rank's first slot for the times at which it sent the outputs of a direction.
  Lanes<Pipelines>* sent(std::int64_t rank, Pass pass) {
    return &ends_[(2 * index(rank) + (pass == Pass::backward ? 1 : 0)) * kept_];
  }
  [[nodiscard]] std::size_t slot(std::int64_t k) const { return index(k) & (kept_ - 1); }

  // Until it waits; true when this finished it.
  bool run(std::int64_t number_of_rank) {
    Rank& rank = ranks_[index(number_of_rank)];
    if (rank.backwards.done == passes_) return false;
    const bool first = number_of_rank == 0;
    const bool last = number_of_rank + 1 == shape_.ranks;
    // Rank 0 has the microbatches, and what the last rank sent of the chunk before; the last rank turns its own passes
    // through the last chunk round, and has what rank 0 sent of the chunk behind. Both are a group's passes away.
    const std::int64_t before = first ? shape_.ranks - 1 : number_of_rank - 1;
    const std::int64_t behind = last ? 0 : number_of_rank + 1;
    const std::int64_t forwards_sent = ranks_[index(before)].forwards.done;
    const std::int64_t backwards_sent = ranks_[index(behind)].backwards.done;
    const Lanes<Pipelines>* const forward_inputs = sent(before, Pass::forward);
    const Lanes<Pipelines>* const backward_inputs = sent(behind, Pass::backward);
    Lanes<Pipelines>* const forward_outputs = sent(number_of_rank, Pass::forward);
    Lanes<Pipelines>* const backward_outputs = sent(number_of_rank, Pass::backward);
    const Span* const spans = &spans_[index(number_of_rank)];
    Passes forwards = rank.forwards;
    Passes backwards = rank.backwards;
    Lanes<Pipelines> clock = rank.clock;
    const bool alone = shape_.ranks == 1;
    while (backwards.done < passes_) {
      if (forwards.done < passes_ && forwards.done <= backwards.done + rank.ahead) {
        if (!first || forwards.chunk > 0) {
          const std::int64_t k = first ? forwards.done - forwards.group : forwards.done;
          if ((alone ? forwards.done : forwards_sent) <= k) break;
          wait_for(clock, forward_inputs[slot(k)]);
        }
        advance(clock, spans[index(forwards.chunk * shape_.ranks)].forward);
        forward_outputs[slot(forwards.done++)] = clock;
        if (--forwards.left == 0) {
          if (++forwards.chunk == shape_.chunks) {
            forwards.chunk = 0;
            forwards.group = next_group(forwards);
          }
          forwards.left = forwards.group;
        }
      } else {
        if (!last || backwards.chunk + 1 < shape_.chunks) {
          const std::int64_t k = last ? backwards.done - backwards.group : backwards.done;
          if ((alone ? backwards.done : backwards_sent) <= k) break;
          wait_for(clock, backward_inputs[slot(k)]);
        } else {
          // The forward pass through the last chunk of the model: this rank's own, so it has ended.
          EXPECTS(forwards.done > backwards.done + (shape_.chunks - 1) * backwards.group);
        }
        advance(clock, spans[index(backwards.chunk * shape_.ranks)].backward);
        backward_outputs[slot(backwards.done++)] = clock;
        if (--backwards.left == 0) {
          if (--backwards.chunk < 0) {
            backwards.chunk = shape_.chunks - 1;
            backwards.group = next_group(backwards);
          }
          backwards.left = backwards.group;
        }
      }
    }
    steps_ += forwards.done - rank.forwards.done + backwards.done - rank.backwards.done;
    rank.forwards = forwards;
    rank.backwards = backwards;
    rank.clock = clock;
    return backwards.done == passes_;
  }

  const ScheduleShape& shape_;
  std::int64_t passes_;
  std::int64_t steps_ = 0;
  std::size_t kept_ = 0;  // of a rank's last passes of one direction: a power of two
  // By rank, direction and pass modulo `kept_`: when the output was sent. Written before it is read.
  std::unique_ptr<Lanes<Pipelines>[]> ends_;
  std::vector<Rank> ranks_;
  std::vector<Span> spans_;
};

}  // namespace headroom

// Makespans of schedules whose microbatches go around the ranks, computed with as little work as possible.
// Only for makespan.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/schedule/makespan.hpp"

namespace headroom {

// One number for each of several pipelines that run the same schedule with their own spans.
template <std::size_t Pipelines>
using Lanes = std::array<double, Pipelines>;

// Runs interleaved schedules with only the state that determines when each pass ends. For each rank, this is
// how many forward and backward passes it has run, and when it sent the last outputs. The order of passes
// does not depend on times, so several pipelines take the same steps.
//
// Times are whole numbers of a quantum, chosen so that no sum of them is rounded. If everything that ranks
// wait for is as it was some groups of microbatches before, only later by one and the same time, the schedule
// repeats: later steps depend on nothing else. These groups are counted, and only the last ones run.
template <std::size_t Pipelines>
class Interleaved {
 public:
  Interleaved(const ScheduleShape& shape, std::span<const std::span<const ChunkSpans>> pipelines)
      : shape_(shape), passes_(shape.microbatches * shape.chunks) {
    // A rank is ahead of the ranks that it feeds by at most its warm-up and a pass, or a group's passes of a
    // chunk.
    kept_ = std::bit_ceil(index(std::min(passes_, (shape.chunks + 1) * group_size(shape)) + 1));
    ends_.reset(new Lanes<Pipelines>[2 * kept_ * index(shape.ranks)]);  // not cleared, unlike make_unique's
    ranks_.resize(index(shape.ranks));
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      ranks_[index(rank)] = {
          .ahead = warm_up_passes(shape, rank),
          .forwards = {.group = group_size(shape), .left = group_size(shape)},
          .backwards = {.chunk = shape.chunks - 1, .group = group_size(shape), .left = group_size(shape)}};
    }
    spans_.resize(index(shape.ranks * shape.chunks));
    for (std::size_t lane = 0; lane < Pipelines; ++lane) {
      // Lanes without a pipeline repeat the last pipeline.
      const std::span<const ChunkSpans> spans = pipelines[std::min(lane, pipelines.size() - 1)];
      quantum_[lane] = quantum_of(spans, shape.microbatches);
      for (std::size_t stage = 0; stage < spans_.size(); ++stage) {
        spans_[stage].forward[lane] = std::round(spans[stage].forward.count() / quantum_[lane]);
        spans_[stage].backward[lane] = std::round(spans[stage].backward.count() / quantum_[lane]);
      }
    }
  }

  Lanes<Pipelines> makespans() {
    bool runs_on = shape_.microbatches / group_size(shape_) < least_groups;
    for (std::int64_t left = shape_.ranks; left > 0;) {
      const std::int64_t before = steps_;
      // Forward passes go down the ranks, backward passes up.
      for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) left -= run(rank) ? 1 : 0;
      for (std::int64_t rank = shape_.ranks - 2; rank >= 0; --rank) left -= run(rank) ? 1 : 0;
      EXPECTS(left == 0 || steps_ > before);  // otherwise ranks wait for each other
      runs_on = runs_on || left == 0 || counts_groups();
    }
    Lanes<Pipelines> longest{};
    for (const Rank& rank : ranks_) wait_for(longest, rank.clock);
    for (std::size_t i = 0; i < Pipelines; ++i) longest[i] *= quantum_[i];
    return longest;
  }

 private:
  // Progress of a rank in one direction. `done` counts the passes that it has run. The next pass goes through
  // `chunk`, as do `left` microbatches of the group before the next chunk's turn.
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

  // The state that all later steps depend on.
  struct Moment {
    std::vector<Rank> ranks;
    std::unique_ptr<Lanes<Pipelines>[]> ends;
  };

  // Running fewer groups is faster than comparing them.
  static constexpr std::int64_t least_groups = 4;

  // Returns a power of two as quantum. All spans one after the other, rounded, are at most 2^53 quanta, so
  // that doubles hold all sums exactly.
  static double quantum_of(std::span<const ChunkSpans> spans, std::int64_t microbatches) {
    constexpr int bits = 53;
    double sum = 0;
    for (const ChunkSpans& span : spans) sum += span.forward.count() + span.backward.count();
    const double most = 2 * real(microbatches) * sum;
    const bool is_normal = std::isfinite(most) && most > std::ldexp(std::numeric_limits<double>::min(), bits);
    return is_normal ? std::ldexp(1, std::ilogb(most) + 1 - bits) : 1;
  }

  [[nodiscard]] std::int64_t passes_of_group() const { return group_size(shape_) * shape_.chunks; }
  [[nodiscard]] std::size_t slots() const { return 2 * kept_ * index(shape_.ranks); }

  // Compares with an earlier moment each time that rank 0 has finished another group. Returns true once
  // groups have been counted.
  bool counts_groups() {
    const std::int64_t group = ranks_.front().backwards.done / passes_of_group();
    if (group == last_group_) return false;
    last_group_ = group;
    if (const std::optional<Lanes<Pipelines>> later = repeated()) {
      go_on(*later);
      return true;
    }
    if (group < next_moment_) return false;
    next_moment_ = group + group / 2 + 1;  // ever further apart, to find a period of any length
    if (!earlier_.ends) earlier_.ends = std::make_unique<Lanes<Pipelines>[]>(slots());
    earlier_.ranks = ranks_;
    std::copy_n(ends_.get(), slots(), earlier_.ends.get());
    return false;
  }

  [[nodiscard]] std::int64_t passes_since() const {
    return ranks_.front().backwards.done - earlier_.ranks.front().backwards.done;
  }

  // Returns how much later everything is than at the earlier moment, or nothing if the state differs in more
  // than time.
  std::optional<Lanes<Pipelines>> repeated() {
    if (earlier_.ranks.empty()) return std::nullopt;
    const std::int64_t period = passes_since();
    if (period % passes_of_group() != 0) return std::nullopt;
    Lanes<Pipelines> later{};
    for (std::size_t i = 0; i < Pipelines; ++i)
      later[i] = ranks_.front().clock[i] - earlier_.ranks.front().clock[i];
    const auto is_later = [&](const Lanes<Pipelines>& now, const Lanes<Pipelines>& then) {
      for (std::size_t i = 0; i < Pipelines; ++i) {
        if (now[i] - then[i] != later[i]) return false;
      }
      return true;
    };
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const Rank& now = ranks_[i];
      const Rank& then = earlier_.ranks[i];
      const bool stands = now.forwards.done - then.forwards.done == period &&
                          now.backwards.done - then.backwards.done == period;
      if (!stands || !is_later(now.clock, then.clock)) return std::nullopt;
    }
    bool all = true;
    visit_awaited([&](std::size_t first, std::int64_t k) {
      all = all && k >= period && is_later(ends_[first + slot(k)], earlier_.ends[first + slot(k - period)]);
    });
    return all ? std::optional(later) : std::nullopt;
  }

  // Calls visit(first, k) for each output k that a pass has yet to read, and some more. `first` is the first
  // slot of its rank and direction.
  template <class Visit>
  void visit_awaited(Visit visit) {
    const auto visit_sent = [&](std::int64_t rank, Pass pass, std::int64_t read, std::int64_t done) {
      const auto first = index(sent(rank, pass) - ends_.get());
      // A reader that is not next to the sender reads a group later.
      for (std::int64_t k = std::max(read - group_size(shape_), std::int64_t{0}); k < done; ++k)
        visit(first, k);
    };
    for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
      const Rank& sender = ranks_[index(rank)];
      const Rank& next = ranks_[index((rank + 1) % shape_.ranks)];
      const Rank& previous = ranks_[index((rank + shape_.ranks - 1) % shape_.ranks)];
      visit_sent(rank, Pass::forward, next.forwards.done, sender.forwards.done);
      visit_sent(rank, Pass::backward, previous.backwards.done, sender.backwards.done);
    }
  }

  // Skips whole periods, as many as leave every rank a full group to begin.
  void go_on(const Lanes<Pipelines>& later) {
    std::int64_t most = 0;
    for (const Rank& rank : ranks_) most = std::max(most, rank.forwards.done);
    const std::int64_t whole_groups = shape_.microbatches / group_size(shape_);
    const std::int64_t periods = ((whole_groups - 1) * passes_of_group() - most) / passes_since();
    if (periods <= 0) return;
    const std::int64_t passes = periods * passes_since();
    Lanes<Pipelines> shift = later;
    for (double& time : shift) time *= real(periods);
    visit_awaited([&](std::size_t first, std::int64_t k) {
      Lanes<Pipelines>& moved = earlier_.ends[first + slot(k + passes)];
      moved = ends_[first + slot(k)];
      advance(moved, shift);
    });
    std::swap(ends_, earlier_.ends);
    for (Rank& rank : ranks_) {
      rank.forwards.done += passes;
      rank.backwards.done += passes;
      advance(rank.clock, shift);
    }
  }

  // Returns the size of the next group: smaller if fewer microbatches are left.
  [[nodiscard]] std::int64_t next_group(const Passes& passes) const {
    return std::min(passes.group, shape_.microbatches - passes.done / shape_.chunks);
  }

  static void wait_for(Lanes<Pipelines>& clock, const Lanes<Pipelines>& arrived) {
    for (std::size_t i = 0; i < Pipelines; ++i) clock[i] = clock[i] > arrived[i] ? clock[i] : arrived[i];
  }
  static void advance(Lanes<Pipelines>& clock, const Lanes<Pipelines>& span) {
    for (std::size_t i = 0; i < Pipelines; ++i) clock[i] += span[i];
  }

  // Returns a rank's first slot for the send times of a direction.
  Lanes<Pipelines>* sent(std::int64_t rank, Pass pass) {
    return &ends_[(2 * index(rank) + (pass == Pass::backward ? 1 : 0)) * kept_];
  }
  [[nodiscard]] std::size_t slot(std::int64_t k) const { return index(k) & (kept_ - 1); }

  // Runs a rank until it waits. Returns true if this call finished the rank.
  bool run(std::int64_t number_of_rank) {
    Rank& rank = ranks_[index(number_of_rank)];
    if (rank.backwards.done == passes_) return false;
    const bool first = number_of_rank == 0;
    const bool last = number_of_rank + 1 == shape_.ranks;
    // Rank 0 reads the microbatches, and what the last rank sent from the chunk before. The last rank turns
    // its own passes through the last chunk around, and reads what rank 0 sent from the chunk after. Both
    // inputs are one group's passes back.
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
          // The input is this rank's own forward pass through the last chunk of the model, so it has ended.
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
  std::size_t kept_ = 0;  // last passes kept for each rank and direction: a power of two
  // Send times of outputs, by rank, direction and pass modulo `kept_`. Written before they are read.
  std::unique_ptr<Lanes<Pipelines>[]> ends_;
  std::vector<Rank> ranks_;
  std::vector<Span> spans_;
  Lanes<Pipelines> quantum_{};
  Moment earlier_;
  std::int64_t last_group_ = 0;
  std::int64_t next_moment_ = 1;
};

}  // namespace headroom

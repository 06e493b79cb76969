#include "headroom/schedule/makespan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "headroom/core/counts.hpp"

namespace headroom {
namespace {

Seconds gpipe_makespan(std::int64_t microbatches, std::span<const ChunkSpans> spans) {
  ChunkSpans sum;
  ChunkSpans longest;
  for (const ChunkSpans& rank : spans) {
    sum.forward += rank.forward;
    sum.backward += rank.backward;
    longest.forward = std::max(longest.forward, rank.forward);
    longest.backward = std::max(longest.backward, rank.backward);
  }
  return sum.forward + sum.backward + real(microbatches - 1) * (longest.forward + longest.backward);
}

// The sums and maxima of the header's formula, over the ranks up to and with q.
struct Prefix {
  ChunkSpans sum;
  ChunkSpans longest;
};

Prefix extended(Prefix prefix, const ChunkSpans& rank) {
  prefix.sum.forward += rank.forward;
  prefix.sum.backward += rank.backward;
  prefix.longest.forward = std::max(prefix.longest.forward, rank.forward);
  prefix.longest.backward = std::max(prefix.longest.backward, rank.backward);
  return prefix;
}

Seconds one_forward_one_backward_makespan(std::int64_t microbatches, std::span<const ChunkSpans> spans) {
  const std::int64_t ranks = std::ssize(spans);
  // What it takes to fill up to rank q and come back from it, and to go there again and drain; on each rank M less the
  // part before M. From the last rank on, the best of those behind is carried along.
  // Most pipelines are short enough to need no memory of their own.
  std::array<Prefix, 16> few;
  std::vector<Prefix> many;
  if (spans.size() > few.size()) many.resize(spans.size());
  const std::span<Prefix> prefixes = many.empty() ? std::span(few).first(spans.size()) : std::span(many);
  Prefix prefix;
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    prefixes[rank] = prefix = extended(prefix, spans[rank]);
  }
  Seconds longest;
  Seconds behind_fill;
  Seconds behind_drain;
  for (std::int64_t rank = ranks - 1; rank >= 0; --rank) {
    const Prefix& here = prefixes[index(rank)];
    const double stays = real(ranks - 1 - rank);
    const Seconds around = here.sum.forward + here.sum.backward;
    const Seconds fill = around + stays * here.longest.forward;
    const Seconds drain = around + stays * here.longest.backward;
    const std::int64_t pairs = microbatches - ranks + rank;
    if (pairs >= 0) {
      const Seconds pair = spans[index(rank)].forward + spans[index(rank)].backward;
      Seconds ends = std::max(fill, behind_fill) + std::max(drain, behind_drain);
      if (pairs == 0) ends = std::max({fill + drain, fill + behind_drain, behind_fill + drain});
      longest = std::max(longest, ends - around + real(pairs) * pair);
    }
    behind_fill = std::max(behind_fill, fill);
    behind_drain = std::max(behind_drain, drain);
  }
  return longest;
}

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

// Of at most so many pipelines.
template <std::size_t AtOnce>
void run_at_once(const ScheduleShape& shape, std::span<const std::span<const ChunkSpans>> pipelines,
                 std::span<Seconds> longest) {
  if constexpr (AtOnce > 1) {
    if (pipelines.size() <= AtOnce / 2) return run_at_once<AtOnce / 2>(shape, pipelines, longest);
  }
  const Lanes<AtOnce> times = Interleaved<AtOnce>(shape, pipelines).makespans();
  for (std::size_t i = 0; i < longest.size(); ++i) longest[i] = Seconds(times[i]);
}

}  // namespace

ChunkSpans chunk_spans(const ScheduleShape& shape, const PassTimes& times, std::span<const Seconds> links,
                       std::int64_t stage) {
  ChunkSpans spans{.forward = times.forward,
                   .backward = times.recompute + times.backward + times.backward_weight};
  if (links.empty() || shape.ranks == 1) return spans;
  const std::int64_t stages = shape.ranks * shape.chunks;
  if (stage + 1 < stages) spans.forward += links[index(stage % shape.ranks)];
  if (stage > 0) spans.backward += links[index((stage - 1) % shape.ranks)];
  return spans;
}

Seconds makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans) {
  EXPECTS(std::ssize(spans) == shape.ranks * shape.chunks && !has_weight_passes(shape));
  switch (shape.kind) {
    case ScheduleKind::gpipe: return gpipe_makespan(shape.microbatches, spans);
    case ScheduleKind::one_forward_one_backward:
      return one_forward_one_backward_makespan(shape.microbatches, spans);
    case ScheduleKind::interleaved: {
      Seconds longest;
      run_at_once<1>(shape, std::span(&spans, 1), std::span(&longest, 1));
      return longest;
    }
    case ScheduleKind::zero_bubble_h1: break;
  }
  EXPECTS(!"schedule with a makespan of its own");
  return {};
}

void makespans(const ScheduleShape& shape, std::span<const std::span<const ChunkSpans>> pipelines,
               std::span<Seconds> longest) {
  EXPECTS(pipelines.size() == longest.size());
  if (shape.kind != ScheduleKind::interleaved) {
    std::transform(pipelines.begin(), pipelines.end(), longest.begin(),
                   [&](std::span<const ChunkSpans> spans) { return makespan(shape, spans); });
    return;
  }
  constexpr std::size_t at_once = 8;
  for (std::size_t first = 0; first < pipelines.size(); first += at_once) {
    const std::size_t count = std::min(at_once, pipelines.size() - first);
    run_at_once<at_once>(shape, pipelines.subspan(first, count), longest.subspan(first, count));
  }
}

Seconds least_makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans) {
  EXPECTS(std::ssize(spans) == shape.ranks * shape.chunks);
  // Of the first group's forward passes through the first chunk, and of the last group's backward passes, those that a rank
  // before may run while this one waits.
  const bool in_groups = shape.kind == ScheduleKind::interleaved && shape.chunks > 1;
  const std::int64_t group = std::min(group_size(shape), shape.microbatches);
  const std::int64_t rest = shape.microbatches % group;
  const double filling = in_groups ? real(group - 1) : 0;
  const double draining = in_groups ? real((rest == 0 ? group : rest) - 1) : 0;
  Seconds longest;
  Seconds ends;  // through the first chunk of the ranks before, forward and, where it comes last, backward
  ChunkSpans slowest;  // first chunk of the ranks so far
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    Seconds round;
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const ChunkSpans& span = spans[index(stage_of(shape, rank, chunk))];
      round += span.forward + span.backward;
    }
    const ChunkSpans& first = spans[index(rank)];
    slowest.forward = std::max(slowest.forward, first.forward);
    slowest.backward = std::max(slowest.backward, first.backward);
    longest = std::max(longest, ends + real(shape.microbatches) * round +
                                    filling * (slowest.forward - first.forward) +
                                    draining * (slowest.backward - first.backward));
    ends += has_weight_passes(shape) ? first.forward : first.forward + first.backward;
  }
  constexpr double rounding = 1e-9;  // of sums of up to a million terms
  return (1 - rounding) * longest;
}

ReplayedSchedule timed_schedule(const ScheduleShape& shape, const ScheduleTimes& times) {
  const bool windows = std::any_of(times.windows.begin(), times.windows.end(), [](auto w) { return w > 0; });
  if (windows || has_weight_passes(shape)) return replay_schedule(shape, times);
  std::vector<ChunkSpans> spans;
  ReplayedSchedule result{.ranks = std::vector<ReplayedRank>(index(shape.ranks))};
  for (std::int64_t stage = 0; stage < std::ssize(times.stages); ++stage) {
    const PassTimes& pass = times.stages[index(stage)];
    spans.push_back(chunk_spans(shape, pass, times.links, stage));
    ReplayedRank& rank = result.ranks[index(stage % shape.ranks)];
    const double passes = real(shape.microbatches);
    rank.forward += passes * pass.forward;
    rank.recompute += passes * pass.recompute;
    rank.backward += passes * pass.backward;
    const ChunkSpans alone = chunk_spans(shape, pass, {}, stage);
    rank.sending +=
        passes * (spans.back().forward - alone.forward + (spans.back().backward - alone.backward));
  }
  result.makespan = makespan(shape, spans);
  for (ReplayedRank& rank : result.ranks) {
    rank.idle = std::max(result.makespan - busy(rank) - rank.sending, Seconds(0));
  }
  return result;
}

}  // namespace headroom

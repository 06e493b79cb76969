#include "headroom/schedule/makespan.hpp"

#include <algorithm>

namespace headroom {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
double number(std::int64_t i) { return static_cast<double>(i); }

Seconds gpipe_makespan(std::int64_t microbatches, std::span<const ChunkSpans> spans) {
  ChunkSpans sum;
  ChunkSpans longest;
  for (const ChunkSpans& rank : spans) {
    sum.forward += rank.forward;
    sum.backward += rank.backward;
    longest.forward = std::max(longest.forward, rank.forward);
    longest.backward = std::max(longest.backward, rank.backward);
  }
  return sum.forward + sum.backward + number(microbatches - 1) * (longest.forward + longest.backward);
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
  thread_local std::vector<Prefix> prefixes;
  prefixes.resize(spans.size());
  Prefix prefix;
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    prefixes[rank] = prefix = extended(prefix, spans[rank]);
  }
  Seconds longest;
  Seconds behind_fill;
  Seconds behind_drain;
  for (std::int64_t rank = ranks - 1; rank >= 0; --rank) {
    const Prefix& here = prefixes[index(rank)];
    const double stays = number(ranks - 1 - rank);
    const Seconds around = here.sum.forward + here.sum.backward;
    const Seconds fill = around + stays * here.longest.forward;
    const Seconds drain = around + stays * here.longest.backward;
    const std::int64_t pairs = microbatches - ranks + rank;
    if (pairs >= 0) {
      const Seconds pair = spans[index(rank)].forward + spans[index(rank)].backward;
      Seconds ends = std::max(fill, behind_fill) + std::max(drain, behind_drain);
      if (pairs == 0) ends = std::max({fill + drain, fill + behind_drain, behind_fill + drain});
      longest = std::max(longest, ends - around + number(pairs) * pair);
    }
    behind_fill = std::max(behind_fill, fill);
    behind_drain = std::max(behind_drain, drain);
  }
  return longest;
}

// Runs an interleaved schedule with no more than it takes to know when each pass ends: of each rank, how many forward
// and backward passes it has run and when their outputs arrived.
class Interleaved {
 public:
  Interleaved(const ScheduleShape& shape, std::span<const ChunkSpans> spans)
      : shape_(shape),
        spans_(spans),
        passes_(shape.microbatches * shape.chunks),
        ends_(index(2 * passes_ * shape.ranks)),
        ranks_(index(shape.ranks)) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      ranks_[index(rank)].ahead = warm_up_passes(shape, rank);
    }
  }

  Seconds makespan() {
    for (std::int64_t left = shape_.ranks; left > 0;) {
      const std::int64_t before = steps_;
      for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) left -= run(rank) ? 1 : 0;
      EXPECTS(left == 0 || steps_ > before);  // or ranks wait for each other
    }
    Seconds longest;
    for (const Rank& rank : ranks_) longest = std::max(longest, rank.clock);
    return longest;
  }

 private:
  struct Rank {
    Progress done;
    std::int64_t ahead = 0;
    Seconds clock;
    bool finished = false;
  };

  Seconds* forwards(std::int64_t rank) { return &ends_[index(2 * passes_ * rank)]; }
  Seconds* backwards(std::int64_t rank) { return forwards(rank) + passes_; }

  // Until it waits; true when this finished it.
  bool run(std::int64_t number_of_rank) {
    Rank& rank = ranks_[index(number_of_rank)];
    if (rank.finished) return false;
    while (rank.done.backwards < passes_) {
      const bool forward =
          rank.done.forwards < passes_ && rank.done.forwards <= rank.done.backwards + rank.ahead;
      if (!(forward ? run_forward(number_of_rank, rank) : run_backward(number_of_rank, rank))) return false;
      ++steps_;
    }
    return rank.finished = true;
  }

  bool run_forward(std::int64_t r, Rank& rank) {
    const std::int64_t k = rank.done.forwards;
    const std::int64_t chunk = k / shape_.ranks % shape_.chunks;
    if (r > 0) {
      if (ranks_[index(r - 1)].done.forwards <= k) return false;
      rank.clock = std::max(rank.clock, forwards(r - 1)[k]);
    } else if (chunk > 0) {
      const std::int64_t last = shape_.ranks - 1;
      if (ranks_[index(last)].done.forwards <= k - shape_.ranks) return false;
      rank.clock = std::max(rank.clock, forwards(last)[k - shape_.ranks]);
    }
    rank.clock += spans_[index(stage_of(shape_, r, chunk))].forward;
    forwards(r)[k] = rank.clock;
    ++rank.done.forwards;
    return true;
  }

  bool run_backward(std::int64_t r, Rank& rank) {
    const std::int64_t k = rank.done.backwards;
    const std::int64_t passed = k / shape_.ranks % shape_.chunks;  // chunks behind this one in the model
    if (r + 1 < shape_.ranks) {
      if (ranks_[index(r + 1)].done.backwards <= k) return false;
      rank.clock = std::max(rank.clock, backwards(r + 1)[k]);
    } else if (passed > 0) {
      if (ranks_[0].done.backwards <= k - shape_.ranks) return false;
      rank.clock = std::max(rank.clock, backwards(0)[k - shape_.ranks]);
    } else {
      // The forward pass through the last chunk of the model: this rank's own, so it has ended.
      EXPECTS(rank.done.forwards > k + (shape_.chunks - 1) * shape_.ranks);
    }
    rank.clock += spans_[index(stage_of(shape_, r, shape_.chunks - 1 - passed))].backward;
    backwards(r)[k] = rank.clock;
    ++rank.done.backwards;
    return true;
  }

  const ScheduleShape& shape_;
  std::span<const ChunkSpans> spans_;
  std::int64_t passes_;
  std::int64_t steps_ = 0;
  std::vector<Seconds> ends_;  // by rank: of its forward passes, of its backward passes
  std::vector<Rank> ranks_;
};

}  // namespace

ChunkSpans chunk_spans(const ScheduleShape& shape, const PassTimes& times, std::span<const Seconds> links,
                       std::int64_t stage) {
  ChunkSpans spans{.forward = times.forward, .backward = times.replay + times.backward};
  if (links.empty() || shape.ranks == 1) return spans;
  const std::int64_t stages = shape.ranks * shape.chunks;
  if (stage + 1 < stages) spans.forward += links[index(stage % shape.ranks)];
  if (stage > 0) spans.backward += links[index((stage - 1) % shape.ranks)];
  return spans;
}

Seconds makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans) {
  EXPECTS(std::ssize(spans) == shape.ranks * shape.chunks);
  switch (shape.kind) {
    case ScheduleKind::gpipe: return gpipe_makespan(shape.microbatches, spans);
    case ScheduleKind::one_forward_one_backward:
      return one_forward_one_backward_makespan(shape.microbatches, spans);
    case ScheduleKind::interleaved: return Interleaved(shape, spans).makespan();
  }
  EXPECTS(!"unknown schedule");
  return {};
}

Seconds least_makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans) {
  EXPECTS(std::ssize(spans) == shape.ranks * shape.chunks);
  Seconds longest;
  Seconds ends;  // through the first chunk of the ranks before, forward and backward
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    Seconds round;
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const ChunkSpans& span = spans[index(stage_of(shape, rank, chunk))];
      round += span.forward + span.backward;
    }
    longest = std::max(longest, ends + number(shape.microbatches) * round);
    const ChunkSpans& first = spans[index(rank)];
    ends += first.forward + first.backward;
  }
  constexpr double rounding = 1e-9;  // of sums of up to a million terms
  return (1 - rounding) * longest;
}

ReplayedSchedule timed_schedule(const ScheduleShape& shape, const ScheduleTimes& times) {
  const bool windows = std::any_of(times.windows.begin(), times.windows.end(), [](auto w) { return w > 0; });
  if (windows) return replay_schedule(shape, times);
  std::vector<ChunkSpans> spans;
  ReplayedSchedule result{.ranks = std::vector<ReplayedRank>(index(shape.ranks))};
  for (std::int64_t stage = 0; stage < std::ssize(times.stages); ++stage) {
    const PassTimes& pass = times.stages[index(stage)];
    spans.push_back(chunk_spans(shape, pass, times.links, stage));
    ReplayedRank& rank = result.ranks[index(stage % shape.ranks)];
    const double passes = number(shape.microbatches);
    rank.forward += passes * pass.forward;
    rank.replay += passes * pass.replay;
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

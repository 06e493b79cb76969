#include "headroom/schedule/makespan.hpp"

#include <algorithm>
#include <array>

#include "headroom/core/counts.hpp"
#include "schedule/interleaved.hpp"

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

// Sums and maxima of the header's formula over the ranks 0 to q.
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
  // fill and drain: time to fill up to rank q and come back, and time to go there again and drain. For each
  // rank M, the part before M is subtracted. The loop goes down from the last rank and carries the maximum
  // over later ranks along.
  //
  // Most pipelines fit into the array and allocate nothing.
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

// Computes the makespans of at most AtOnce pipelines.
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
                       std::int64_t stage, double overlap_loss) {
  ChunkSpans spans{.forward = times.forward,
                   .backward = times.recompute + times.backward + times.backward_weight};
  if (overlaps_passes(shape)) {
    spans.forward -= (1 - overlap_loss) * times.forward_exchanges;
    spans.backward -= (1 - overlap_loss) * times.backward_exchanges;
    return spans;
  }
  if (links.empty() || shape.ranks == 1) return spans;
  const auto after = stage + 1 < stages_of(shape) ? link_after(shape, {0, stage}) : std::nullopt;
  const auto before = stage > 0 ? link_after(shape, {0, stage - 1}) : std::nullopt;
  if (after) spans.forward += links[index(*after)];
  if (before) spans.backward += links[index(*before)];
  return spans;
}

Seconds makespan(const ScheduleShape& shape, std::span<const ChunkSpans> spans) {
  EXPECTS(std::ssize(spans) == stages_of(shape) && !needs_replay(shape));
  switch (shape.kind) {
    case ScheduleKind::gpipe: return gpipe_makespan(shape.microbatches, spans);
    case ScheduleKind::one_forward_one_backward:
      return one_forward_one_backward_makespan(shape.microbatches, spans);
    case ScheduleKind::interleaved:
    case ScheduleKind::looped_bfs: {
      Seconds longest;
      run_at_once<1>(shape, std::span(&spans, 1), std::span(&longest, 1));
      return longest;
    }
    case ScheduleKind::zero_bubble_h1:
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::zero_bubble_2p:
    case ScheduleKind::zero_bubble_v:
    case ScheduleKind::v_half:
    case ScheduleKind::v_min:
    case ScheduleKind::dualpipe_v:
    case ScheduleKind::dualpipe: break;
  }
  EXPECTS(!"schedule with a makespan of its own");
  return {};
}

void makespans(const ScheduleShape& shape, std::span<const std::span<const ChunkSpans>> pipelines,
               std::span<Seconds> longest) {
  EXPECTS(pipelines.size() == longest.size());
  if (!goes_round(shape.kind)) {
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
  EXPECTS(std::ssize(spans) == stages_of(shape));
  // filling and draining: passes that an earlier rank may run while this one waits. These are forward passes
  // of the first group through the first chunk, and backward passes of the last group.
  const bool in_groups = goes_round(shape.kind) && shape.chunks > 1;
  const std::int64_t group = std::min(group_size(shape), shape.microbatches);
  const std::int64_t rest = shape.microbatches % group;
  const double filling = in_groups ? real(group - 1) : 0;
  const double draining = in_groups ? real((rest == 0 ? group : rest) - 1) : 0;
  Seconds longest;
  Seconds ends;        // first chunk of earlier ranks: forward and, as it comes last, backward
  ChunkSpans slowest;  // slowest first chunk of the ranks so far
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    Seconds round;
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const ChunkSpans& span = spans[index(stage_of(shape, rank, chunk))];
      round += span.forward + span.backward;
    }
    const ChunkSpans& first = spans[index(stage_of(shape, rank, 0))];
    slowest.forward = std::max(slowest.forward, first.forward);
    slowest.backward = std::max(slowest.backward, first.backward);
    longest = std::max(longest, ends + real(microbatches_of_chunk(shape)) * round +
                                    filling * (slowest.forward - first.forward) +
                                    draining * (slowest.backward - first.backward));
    // Ranks with weight-gradient passes may follow each other into the next iteration without a wait.
    if (!has_weight_passes(shape)) ends += first.forward + first.backward;
  }
  constexpr double rounding = 1e-9;  // relative, for sums of up to a million terms
  return (1 - rounding) * longest;
}

ReplayedSchedule timed_schedule(const PipelineOrder& order, const ScheduleTimes& times) {
  const ScheduleShape& shape = order.shape();
  const bool windows = std::any_of(times.windows.begin(), times.windows.end(), [](auto w) { return w > 0; });
  if (windows || needs_replay(shape)) return replay_periods(order, times);
  std::vector<ChunkSpans> spans;
  ReplayedSchedule result{.ranks = std::vector<ReplayedRank>(index(shape.ranks))};
  for (std::int64_t stage = 0; stage < std::ssize(times.stages); ++stage) {
    const PassTimes& pass = times.stages[index(stage)];
    spans.push_back(chunk_spans(shape, pass, times.links, stage, times.overlap_loss));
    ReplayedRank& rank = result.ranks[index(rank_of(shape, {0, stage}))];
    const double passes = real(shape.microbatches);
    rank.forward += passes * pass.forward;
    rank.recompute += passes * pass.recompute;
    rank.backward += passes * pass.backward;
    const ChunkSpans alone = chunk_spans(shape, pass, {}, stage, times.overlap_loss);
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

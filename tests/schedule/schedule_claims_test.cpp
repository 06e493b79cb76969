// What the authors of zero-bubble schedules, DualPipe and breadth-first pipelines say of them: bubbles, and what is in flight.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/schedule/building_block.hpp"
#include "schedule/any_split_schedule.hpp"

namespace headroom {

namespace {
using enum ScheduleKind;
}

TEST_CASE("split schedules: every rank runs every pass once, in their order") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_split_shape();
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      std::array<std::set<std::pair<std::int64_t, std::int64_t>>, 3> done;
      for (const Step& step : steps_of_rank(shape, rank)) {
        const std::pair name{step.chunk, step.microbatch};
        RC_ASSERT(step.microbatch >= 0);
        RC_ASSERT(step.microbatch < microbatches_of_chunk(shape));
        RC_ASSERT(done.at(static_cast<std::size_t>(step.pass)).insert(name).second);
        if (step.pass == Pass::backward) RC_ASSERT(done[0].contains(name));
        if (step.pass == Pass::backward_weight) RC_ASSERT(done[1].contains(name));
        if (step.whole) RC_ASSERT(done[2].insert(name).second);
      }
      const auto passes = static_cast<std::size_t>(microbatches_of_chunk(shape) * shape.chunks);
      RC_ASSERT(done[0].size() == passes);
      RC_ASSERT(done[1].size() == passes);
      RC_ASSERT(done[2].size() == (has_weight_passes(shape) ? passes : 0));
    }
  }));
}

TEST_CASE("split schedules: cut down, they show every rank the same live passes at the same steps") {
  CHECK(rc::check([] {
    ScheduleShape shape = tests::any_split_shape();
    shape.microbatches *= tests::between(1, 4);
    const auto moments = [](const ScheduleShape& of, std::int64_t rank) {
      std::vector<std::int64_t> alive(2 * static_cast<std::size_t>(of.chunks), 0);  // and waiting for weights
      std::set<std::tuple<Pass, std::int64_t, bool, std::vector<std::int64_t>>> seen;
      visit_steps(of, rank, [&](const Step& step) {
        const auto chunk = static_cast<std::size_t>(step.chunk);
        const auto chunks = static_cast<std::size_t>(of.chunks);
        if (step.pass == Pass::forward) ++alive[chunk];
        if (step.pass == Pass::backward && has_weight_passes(of) && !step.whole) ++alive[chunks + chunk];
        seen.insert({step.pass, step.chunk, step.whole, alive});
        if (step.pass == Pass::backward) --alive[chunk];
        if (step.pass == Pass::backward_weight) --alive[chunks + chunk];
      });
      return seen;
    };
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      RC_ASSERT(moments(shape, rank) == moments(same_liveness(shape), rank));
    }
  }));
}

TEST_CASE("split schedules: a rank is held up by others as little as their authors say") {
  for (std::int64_t p = 1; p <= 8; ++p) {
    const std::int64_t n = 4 * p;
    CAPTURE(p);
    // ZB-H2 and ZB-V: none where all three passes take as long, if no rank waits for another's optimizer.
    for (const ScheduleShape& shape :
         {ScheduleShape{zero_bubble_h2, p, 1, n}, {zero_bubble_2p, p, 1, n}, {zero_bubble_v, p, 2, n}}) {
      if (runs_in_v(shape.kind) && p == 1) continue;
      CAPTURE(name_of(shape.kind));
      const ReplayedSchedule replayed = replay_schedule(shape, tests::all_alike(shape, 1, 1, 1));
      CHECK(tests::longest_span(replayed) == Seconds(static_cast<double>(3 * n * shape.chunks)));
    }
    // Breadth first: p - 1 passes of a chunk either way, as GPipe has p - 1 of all chunks together.
    const ScheduleShape breadth{looped_bfs, p, 3, n};
    CHECK(replay_schedule(breadth, tests::all_alike(breadth, 1, 2, 0)).makespan ==
          Seconds(static_cast<double>(3 * (3 * n + p - 1))));
  }
}

// F&B = F + B where nothing is hidden [deepseek-ai/DualPipe, README.md].
TEST_CASE("DualPipe: the bubble is (p/2 - 1)(F&B + B - 3W) where B is of both parts") {
  for (std::int64_t p = 2; p <= 12; p += 2) {
    for (const double forward : {1.0, 2.0}) {
      const double input = forward;
      const double weight = forward;
      const double full = input + weight;
      const double bubble = static_cast<double>(p / 2 - 1) * (forward + full + full - 3 * weight);
      for (const ScheduleShape& shape :
           {ScheduleShape{dualpipe, p, 2, 4 * p}, {dualpipe_v, p / 2, 2, 2 * p}}) {
        CAPTURE(p);
        CAPTURE(name_of(shape.kind));
        const double work =
            static_cast<double>(microbatches_of_chunk(shape) * shape.chunks) * (forward + full);
        const ReplayedSchedule replayed =
            replay_schedule(shape, tests::all_alike(shape, forward, input, weight));
        CHECK(replayed.makespan == Seconds(work + bubble));
        CHECK(chunks_in_flight(shape, 0) == p + 1);
      }
    }
  }
}

TEST_CASE("DualPipe: collectives of either pass run beside the computation of the other") {
  const PassTimes pass{.forward = Seconds(5),
                       .recompute = Seconds(0),
                       .backward = Seconds(6),
                       .backward_weight = Seconds(2),
                       .forward_exchanges = Seconds(3),
                       .backward_exchanges = Seconds(4)};
  CHECK(hidden_beside(pass, pass, 0) == Seconds(3 + 2));      // 2 of computation ahead beside 4
  CHECK(hidden_beside(pass, pass, 0.5) == Seconds(1.5 + 2));  // and half of them shows in any case
  PassTimes delayed = pass;
  delayed.delayed_weight = Seconds(2);
  // The forward pass hides 2 of 4, what of the backward pass did not wait 2 of 3, and weight gradients 2 of the 3 that are left.
  CHECK(hidden_beside(pass, delayed, 0) == Seconds(2 + 2 + 2));
  delayed.delayed_weight = Seconds(1);  // 2 of 4, 3 of 3, and 1 of 2
  CHECK(hidden_beside(pass, delayed, 0) == Seconds(2 + 3 + 1));
  const ScheduleShape shape{dualpipe_v, 2, 2, 6};
  ScheduleTimes times{.stages = std::vector<PassTimes>(4, pass), .links = {}, .windows = {}};
  const ReplayedSchedule hidden = replay_schedule(shape, times);
  for (PassTimes& stage : times.stages) stage.forward_exchanges = stage.backward_exchanges = Seconds(0);
  const ReplayedSchedule shown = replay_schedule(shape, times);
  CHECK(hidden.makespan < shown.makespan);
  std::int64_t pairs = 0;
  visit_steps(shape, 0, [&](const Step& step) { pairs += step.beside && step.pass == Pass::forward; });
  CHECK(hidden.ranks[0].hidden == 5.0 * static_cast<double>(pairs) * Seconds(1));
  CHECK(busy(hidden.ranks[0]) + hidden.ranks[0].hidden == busy(shown.ranks[0]));
}

TEST_CASE("Megatron's overlap of experts: steady passes run in pairs, behind one more forward pass") {
  const ScheduleShape alone{.microbatches = 4, .in_pairs = true};
  std::string order;
  visit_steps(alone, 0, [&](const Step& step) {
    order += (step.pass == Pass::forward ? "F" : "B") + std::to_string(step.microbatch) +
             (step.beside ? "+" : " ");
  });
  CHECK(order == "F0 F1+B0+F2+B1+F3+B2+B3 ");
  for (std::int64_t p = 2; p <= 6; ++p) {
    ScheduleShape shape{.kind = interleaved, .ranks = p, .chunks = 3, .microbatches = 4 * p};
    const std::int64_t usual = chunks_in_flight(shape, 0);
    shape.in_pairs = true;
    CHECK(chunks_in_flight(shape, 0) == usual + 1);
  }
}

TEST_CASE("split schedules: no more in flight than their authors say") {
  const auto most_held = [](const ScheduleShape& shape, std::int64_t rank) {
    std::int64_t held = 0;
    std::int64_t most = 0;
    visit_steps(shape, rank, [&](const Step& step) {
      if (step.pass == Pass::forward) ++held;
      if (step.pass == Pass::backward_weight || step.whole) --held;
      most = std::max(most, held);
    });
    CHECK(held == 0);
    return most;
  };
  for (std::int64_t p = 2; p <= 8; p += 2) {
    for (std::int64_t rank = 0; rank < p; ++rank) {
      CAPTURE(p);
      CAPTURE(rank);
      CHECK(most_held({zero_bubble_h2, p, 1, 5 * p}, rank) == 2 * p - 1);
      CHECK(most_held({zero_bubble_2p, p, 1, 5 * p}, rank) == 2 * p);
      CHECK(most_held({zero_bubble_v, p, 2, 5 * p}, rank) == 2 * p);  // of half as many layers
      CHECK(most_held({dualpipe, p, 2, 4 * p}, rank) <= p + 1);
    }
  }
  // Of half as many layers: (p + 2)/2 and (p + 4)/3 microbatches, whole ones [arXiv 2405.15362, its authors' demonstration:
  // sail/pipeline-parallelism-with-controllable-memory, description1.md], whatever the number of microbatches.
  for (std::int64_t p = 2; p <= 16; ++p) {
    for (const std::int64_t n : {p + 3, 5 * p}) {
      CAPTURE(p);
      CAPTURE(n);
      std::int64_t half = 0;
      std::int64_t third = 0;
      for (std::int64_t rank = 0; rank < p; ++rank) {
        half = std::max(half, most_held({v_half, p, 2, n}, rank));
        third = std::max(third, most_held({v_min, p, 2, n}, rank));
      }
      CHECK(half == 2 * ((p + 2) / 2));
      CHECK(third == 2 * ((p + 4) / 3));
    }
  }
}

TEST_CASE("split schedules: what V-Half and V-Min have in flight, as docs/schedules.md says") {
  for (std::int64_t p = 2; p <= 16; ++p) {
    const auto in_flight = [&](ScheduleKind kind) {
      std::int64_t most = 0;
      for (std::int64_t rank = 0; rank < p; ++rank)
        most = std::max(most, chunks_in_flight({kind, p, 2, 3 * p}, rank));
      return most;  // of half as many layers
    };
    CAPTURE(p);
    CHECK(in_flight(v_half) == 2 * ((p + 2) / 2));
    // On two ranks one waits for its pass for weights only, which is no longer in flight.
    CHECK(in_flight(v_min) == (p == 2 ? 3 : 2 * ((p + 4) / 3)));
  }
}

TEST_CASE(
    "split schedules: V-Half idles for no longer than p/2 microbatches, V-Min for no longer than 2p/3") {
  for (std::int64_t p = 2; p <= 16; ++p) {
    const std::int64_t n = 3 * p;
    const auto idle = [&](ScheduleKind kind) {
      const ScheduleShape shape{kind, p, 2, n};
      const ReplayedSchedule replayed = replay_schedule(shape, tests::all_alike(shape, 1, 1, 1));
      return replayed.makespan.count() / 6 - static_cast<double>(n);
    };
    CAPTURE(p);
    CHECK(idle(v_half) <= static_cast<double>(p) / 2);
    CHECK(idle(v_min) <= 2 * static_cast<double>(p) / 3);
    CHECK(idle(v_half) >= idle(zero_bubble_v));
  }
}

TEST_CASE("split schedules: more microbatches of V-Half and V-Min are as if all of them had been laid out") {
  for (const ScheduleKind kind : {v_half, v_min}) {
    for (const std::int64_t p : {2, 3, 4, 5, 6, 7, 8, 9, 13, 16}) {
      for (const std::int64_t n : {std::int64_t{1}, p + 5, p + 6, p + 7, p + 11, 3 * p + 7}) {
        CAPTURE(p);
        CAPTURE(n);
        const std::vector<std::vector<RoundMove>> all = building_block_moves(kind, p, n);
        const PipelineOrder order({.kind = kind, .ranks = p, .chunks = 2, .microbatches = n});
        for (std::int64_t rank = 0; rank < p; ++rank) {
          std::vector<RoundMove> moves;
          for (const Round& round : order.of(rank).rounds) {
            for (std::int64_t i = 0; i < round.times; ++i)
              moves.insert(moves.end(), round.moves.begin(), round.moves.end());
          }
          CHECK(moves == all[static_cast<std::size_t>(rank)]);
        }
      }
    }
  }
}

TEST_CASE("split schedules: periods that are alike are skipped, to the last bit of the replay") {
  CHECK(rc::check([] {
    ScheduleShape shape = tests::any_split_shape();
    shape.microbatches *= between(1, 12);
    ScheduleTimes times = tests::any_split_times(shape);
    // Nearly alike, so that the slowest rank may show late.
    if (between(0, 1) == 0) {
      for (PassTimes& pass : times.stages) {
        pass.forward = Seconds(static_cast<double>(between(200, 203)));
        pass.backward = Seconds(static_cast<double>(between(400, 403)));
      }
    }
    RC_ASSERT(replay_periods(shape, times) == replay_schedule(shape, times));
  }));
}

TEST_CASE("split schedules: ten million microbatches take as long to replay as a thousand") {
  using enum ScheduleKind;
  for (ScheduleShape shape : {ScheduleShape{.kind = interleaved, .ranks = 4, .chunks = 2, .in_pairs = true},
                              ScheduleShape{.kind = one_forward_one_backward, .in_pairs = true},
                              ScheduleShape{.kind = zero_bubble_h1, .ranks = 8},
                              ScheduleShape{.kind = zero_bubble_v, .ranks = 4, .chunks = 2},
                              ScheduleShape{.kind = dualpipe_v, .ranks = 4, .chunks = 2}}) {
    const auto makespan_of = [&](std::int64_t microbatches) {
      shape.microbatches = microbatches;
      return replay_periods(shape, tests::all_alike(shape, 3, 5, 2)).makespan;
    };
    const Seconds more = makespan_of(1200) - makespan_of(1000);
    CHECK(makespan_of(10'000'000) == makespan_of(1000) + 9'999'000.0 / 200 * more);
  }
}

TEST_CASE("split schedules: bounds hold, and breadth first needs no replay") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_split_shape();
    const ScheduleTimes times = tests::any_split_times(shape);
    const ReplayedSchedule replayed = replay_schedule(shape, times);
    std::vector<ChunkSpans> spans;
    for (std::int64_t stage = 0; stage < stages_of(shape); ++stage) {
      const PassTimes& pass = times.stages[static_cast<std::size_t>(stage)];
      spans.push_back(chunk_spans(shape, pass, times.links, stage, times.overlap_loss));
    }
    const Seconds least = has_weight_passes(shape) ? tests::longest_span(replayed) : replayed.makespan;
    RC_ASSERT(least_makespan(shape, spans) <= (1 + tests::slack) * least);
    RC_ASSERT(tests::about(timed_schedule(shape, times).makespan, replayed.makespan));
    if (!needs_replay(shape)) RC_ASSERT(tests::about(makespan(shape, spans), replayed.makespan));
  }));
}

}  // namespace headroom

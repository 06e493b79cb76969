#include "headroom/memory/rank.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "schedule/any_schedule.hpp"

namespace headroom {
namespace {

constexpr ScheduleShape alone{.microbatches = 4};

// The peak by following each allocation of each microbatch on the full schedule: nothing is cut down,
// multiplied or remembered from the forward pass other than what was allocated.
Bytes brute_force_peak(const std::vector<StageActivations>& stages, const ScheduleShape& shape,
                       std::int64_t rank) {
  struct Alive {
    Bytes embedding, head, output;
    std::vector<CheckpointRun> checkpoints;  // one by one, in the order of the model
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Alive> alive;
  Bytes now, peak;
  const auto allocate = [&](Bytes bytes) {
    now += bytes;
    peak = std::max(peak, now);
  };
  for (const Step& step : steps_of_rank(shape, rank)) {
    Alive& mine = alive[{step.microbatch, step.chunk}];
    if (step.pass == Pass::forward) {
      const StageActivations& stage = stages[static_cast<std::size_t>(stage_of(shape, rank, step.chunk))];
      allocate(mine.embedding = stage.embedding);
      for (const CheckpointRun& run : stage.layers) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          allocate(run.kept);
          mine.checkpoints.push_back(run);
        }
      }
      allocate(mine.head = stage.head);
      allocate(mine.output = stage.output);
      continue;
    }
    now -= mine.head;
    while (!mine.checkpoints.empty()) {
      const CheckpointRun run = mine.checkpoints.back();
      mine.checkpoints.pop_back();
      allocate(run.recomputed);
      now -= run.recomputed;
      now -= run.kept;
    }
    now -= mine.embedding;
    now -= mine.output;
  }
  CHECK(now == 0_B);
  return peak;
}

// Small enough that all sums are exact; zero often, as most policies recompute nothing or free nothing.
Bytes any_bytes() { return Bytes(*rc::gen::oneOf(rc::gen::just(0), rc::gen::inRange(0, 1000))); }

StageActivations any_stage() {
  StageActivations stage{.embedding = any_bytes(), .head = any_bytes(), .output = any_bytes()};
  for (int runs = *rc::gen::inRange(0, 3); runs > 0; --runs) {
    stage.layers.push_back({*rc::gen::inRange(1, 5), any_bytes(), any_bytes()});
  }
  return stage;
}

ScheduleShape any_rank_shape() {
  const auto kind = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                                      ScheduleKind::interleaved);
  const std::int64_t p = *rc::gen::inRange(1, 6);
  if (kind != ScheduleKind::interleaved) return {kind, p, 1, *rc::gen::inRange(1, 40)};
  if (*rc::gen::arbitrary<bool>()) return tests::any_in_groups(p, 12 * p);
  return {kind, p, *rc::gen::inRange(1, 4), p * *rc::gen::inRange(1, 10)};
}

}  // namespace

TEST_CASE("rank: of ranks whose virtual stages do the same none is fuller than the first") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_rank_shape();
    std::vector<PassActivations> passes;
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk)
      passes.push_back(pass_activations(any_stage()));
    Bytes before = total(rank_activations(passes, shape, 0).at_peak);
    for (std::int64_t rank = 1; rank < shape.ranks; ++rank) {
      const Bytes bytes = total(rank_activations(passes, shape, rank).at_peak);
      RC_ASSERT(bytes <= before);
      before = bytes;
    }
  }));
}

TEST_CASE("rank: the peak of a pass that recomputes nothing is the end of the forward") {
  const RankActivations result =
      rank_activations({{.layers = {{3, 10_B, 0_B}}, .embedding = 1_B, .head = 5_B}}, alone, 0);
  CHECK(result.at_peak == Activations{.layers = 30_B, .embedding = 1_B, .head = 5_B});
  CHECK(result.peak == Step{Pass::forward, 0, 0});
  CHECK(result.chunks_in_flight == 1);
}

TEST_CASE("rank: the head is let go before the first recomputation") {
  const RankActivations result = rank_activations({{.layers = {{3, 2_B, 20_B}}, .head = 5_B}}, alone, 0);
  CHECK(result.at_peak == Activations{.layers = 6_B, .recompute = 20_B});
  CHECK(result.peak == Step{Pass::backward, 0, 0});
}

TEST_CASE("rank: a head larger than the working set is the peak") {
  const RankActivations result = rank_activations({{.layers = {{3, 2_B, 20_B}}, .head = 50_B}}, alone, 0);
  CHECK(result.at_peak == Activations{.layers = 6_B, .head = 50_B});
}

TEST_CASE("rank: block recomputation frees the layers that keep everything before it recomputes the first") {
  // Two checkpointed layers, then one that keeps 30: when the recomputation starts those 30 are gone.
  const RankActivations result = rank_activations({{.layers = {{2, 2_B, 28_B}, {1, 30_B, 0_B}}}}, alone, 0);
  CHECK(result.at_peak == Activations{.layers = 34_B});
  CHECK(result.peak.pass == Pass::forward);
}

TEST_CASE("rank: uniform recomputation holds a whole checkpoint's working set") {
  const RankActivations result = rank_activations({{.layers = {{2, 2_B, 58_B}}}}, alone, 0);
  CHECK(result.at_peak == Activations{.layers = 4_B, .recompute = 58_B});
}

TEST_CASE("rank: outputs that are not deallocated stay for every microbatch in flight") {
  const std::vector<StageActivations> stages{{.layers = {{1, 10_B, 0_B}}, .output = 3_B},
                                             {.layers = {{1, 10_B, 0_B}}}};
  const ScheduleShape shape{ScheduleKind::one_forward_one_backward, 2, 1, 8};
  CHECK(rank_activations(stages, shape, 0).at_peak == Activations{.layers = 20_B, .outputs = 6_B});
  CHECK(rank_activations(stages, shape, 1).at_peak == Activations{.layers = 10_B});
}

TEST_CASE("rank: chunks of different size count as what they are") {
  // Rank 0 holds stages 0 and 2. With n = p both microbatches of both chunks are alive.
  const std::vector<StageActivations> stages{
      {.layers = {{1, 1_B, 0_B}}}, {}, {.layers = {{1, 10_B, 0_B}}}, {}};
  const RankActivations result = rank_activations(stages, {ScheduleKind::interleaved, 2, 2, 2}, 0);
  CHECK(result.at_peak.layers == 22_B);
  CHECK(result.chunks_in_flight == 4);
}

TEST_CASE("rank: the peak is that of following every allocation") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_rank_shape();
    std::vector<StageActivations> stages;
    for (std::int64_t i = 0; i < shape.ranks * shape.chunks; ++i) stages.push_back(any_stage());
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      const RankActivations result = rank_activations(stages, shape, rank);
      RC_ASSERT(total(result.at_peak) == brute_force_peak(stages, shape, rank));
      RC_ASSERT(result.chunks_in_flight == chunks_in_flight(shape, rank));
    }
  }));
}

TEST_CASE(
    "rank: of a forward pass beside a backward pass a rank holds one layer more, and no second microbatch") {
  constexpr Bytes layer = 100_B;
  const StageActivations stage{.layers = {{.count = 10, .kept = layer}}, .embedding = 3_B, .head = 50_B};
  ScheduleShape shape{.microbatches = 4};
  CHECK(total(rank_activations({stage}, shape, 0).at_peak) == 10 * layer + 53_B);
  shape.in_pairs = true;
  // Without the head, which the backward pass frees first and the forward pass comes to last.
  const RankActivations beside = rank_activations({stage}, shape, 0);
  CHECK(beside.at_peak == Activations{.layers = 11 * layer, .embedding = 6_B});
  CHECK(beside.chunks_in_flight == 2);
  CHECK(beside.peak == Step{.pass = Pass::backward});
  // A head that outweighs a layer: the peak is where the backward pass starts.
  StageActivations headed = stage;
  headed.head = 500_B;
  CHECK(rank_activations({headed}, shape, 0).at_peak ==
        Activations{.layers = 10 * layer, .embedding = 6_B, .head = 500_B});
  // One microbatch has none beside it.
  shape.microbatches = 1;
  CHECK(total(rank_activations({stage}, shape, 0).at_peak) == 10 * layer + 53_B);
}

TEST_CASE("rank: passes in pairs take at least what they take in turn, and at the most one more") {
  CHECK(rc::check([] {
    ScheduleShape shape = any_rank_shape();
    RC_PRE(shape.kind == ScheduleKind::interleaved ||
           (shape.kind == ScheduleKind::one_forward_one_backward && shape.ranks == 1));
    std::vector<StageActivations> stages;
    Bytes largest;
    for (std::int64_t i = 0; i < shape.ranks * shape.chunks; ++i) {
      stages.push_back(any_stage());
      largest = std::max(largest, kept(stages.back()));
    }
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      shape.in_pairs = false;
      const Bytes apart = total(rank_activations(stages, shape, rank).at_peak);
      shape.in_pairs = true;
      const RankActivations beside = rank_activations(stages, shape, rank);
      RC_ASSERT(total(beside.at_peak) >= apart);
      RC_ASSERT(beside.chunks_in_flight == chunks_in_flight(shape, rank));
      const std::vector<StepActivations> steps = activations_by_step(stages, shape, rank);
      const auto highest = std::max_element(steps.begin(), steps.end(), [](const auto& x, const auto& y) {
        return total(x.highest) < total(y.highest);
      });
      RC_ASSERT(beside.at_peak == highest->highest);
      RC_ASSERT(total(beside.at_peak) <= apart + 2.0 * largest);
    }
  }));
}

TEST_CASE("rank: the peak is the first of the highest moments of its steps, chunks alike or not") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_rank_shape();
    const bool alike = *rc::gen::arbitrary<bool>();
    const StageActivations one = any_stage();
    std::vector<StageActivations> stages;
    for (std::int64_t i = 0; i < shape.ranks * shape.chunks; ++i) stages.push_back(alike ? one : any_stage());
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      const std::vector<StepActivations> steps = activations_by_step(stages, shape, rank);
      const auto highest = std::max_element(steps.begin(), steps.end(), [](const auto& x, const auto& y) {
        return total(x.highest) < total(y.highest);
      });
      const RankActivations result = rank_activations(stages, shape, rank);
      RC_ASSERT(result.at_peak == highest->highest);
      // Where nothing is kept, every moment is the highest.
      RC_ASSERT(result.peak == highest->step || total(result.at_peak) == 0_B);
    }
  }));
}

TEST_CASE("rank: no part of the peak is negative") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_rank_shape();
    std::vector<StageActivations> stages;
    for (std::int64_t i = 0; i < shape.ranks * shape.chunks; ++i) stages.push_back(any_stage());
    const Activations peak = rank_activations(stages, shape, 0).at_peak;
    for (const Bytes part : {peak.layers, peak.embedding, peak.head, peak.outputs, peak.recompute})
      RC_ASSERT(part >= 0_B);
  }));
}

}  // namespace headroom

// What passes for weights hold and free: inputs of linear layers and the gradients of their outputs.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/memory/rank.hpp"
#include "papers/k22.hpp"

namespace headroom {
namespace {

// Two layers of 4 bytes, of which 3 are held for weights.
const StageActivations stage{.layers = {{2, 4_B, 0_B, 3_B}}};

TEST_CASE("memory: a backward pass leaves what the pass for weights needs, which frees it") {
  const auto steps =
      activations_by_step({stage}, ScheduleShape{.kind = ScheduleKind::zero_bubble_h1, .microbatches = 1}, 0);
  REQUIRE(steps.size() == 3);
  CHECK(steps[0] == StepActivations{{}, false, {.layers = 8_B}, {.layers = 8_B}});
  CHECK(steps[1] == StepActivations{{Pass::backward, 0, 0}, false, {.layers = 8_B}, {.layers = 6_B}});
  CHECK(steps[2] == StepActivations{{Pass::backward_weight, 0, 0}, false, {.layers = 6_B}, {}});
}

TEST_CASE("memory: where weights need more than a checkpoint kept, the last recomputation is the worst") {
  const StageActivations replaying{.layers = {{2, 1_B, 10_B, 3_B}}, .head = 1_B, .head_deferred = 1_B};
  const auto steps = activations_by_step(
      {replaying}, ScheduleShape{.kind = ScheduleKind::zero_bubble_h1, .microbatches = 1}, 0);
  // Before: two checkpoints and the head. At the second recomputation: 1 + 3 + 1, and 10 made again.
  CHECK(total(steps[1].highest) == 15_B);
  CHECK(steps[1].after == Activations{.layers = 6_B, .head = 1_B});
  CHECK(steps[2].after == Activations{});
}

TEST_CASE("ZB-H1: every rank is as full as the first, and that one as under 1F1B") {
  const std::vector<StageActivations> stages(4, {.layers = {{1, 4_B, 0_B, 4_B}}});
  const ScheduleShape merged{.ranks = 4, .microbatches = 12};
  ScheduleShape apart = merged;
  apart.kind = ScheduleKind::zero_bubble_h1;
  const Bytes first = total(rank_activations(stages, merged, 0).at_peak);
  CHECK(first == 16_B);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    CHECK(total(rank_activations(stages, apart, rank).at_peak) == first);
    CHECK(total(rank_activations(stages, merged, rank).at_peak) == static_cast<double>(4 - rank) * 4_B);
  }
}

TEST_CASE("ZB-H1: the peak of few microbatches is that of many, walked through step by step") {
  // What waits for weights is more or less than what the forward pass left.
  for (const Bytes deferred : {1_B, 3_B, 9_B}) {
    const std::vector<StageActivations> stages(
        5, {.layers = {{2, 4_B, 3_B, deferred}}, .head = 2_B, .head_deferred = 1_B});
    const ScheduleShape shape{.kind = ScheduleKind::zero_bubble_h1, .ranks = 5, .microbatches = 60};
    for (std::int64_t rank = 0; rank < 5; ++rank) {
      Bytes highest;
      for (const StepActivations& step : activations_by_step(stages, shape, rank)) {
        highest = std::max(highest, total(step.highest));
      }
      CHECK(total(rank_activations(stages, shape, rank).at_peak) == highest);
    }
  }
}

// A layer of K22 on one device: the inputs of the four linear layers are 2 + 2 + 2 + 8 bytes for each of s b h, the
// gradients of their outputs 6 + 2 + 8 + 2.
TEST_CASE("memory: a layer holds 32 s b h for its weights, and its head input and logits' gradient") {
  const Transformer model = k22::transformer("", 4, 1024, 16);
  const Workload workload{.global_batch = 1, .sequence = 512};
  const double boundary = 512.0 * 1024;
  const DeferredActivations held = deferred_activations(model, {}, workload, Detail::paper);
  CHECK(held.kinds[0].bytes == Bytes(32 * boundary));
  CHECK(held.kinds[1].bytes >= Bytes(2 * boundary));
  const auto vocabulary = static_cast<double>(padded_vocabulary(model, 1));
  CHECK(held.kinds[2].bytes == Bytes(2 * boundary + 2 * 512 * vocabulary));
  // Tensor parallelism with sequence parallelism divides all of it.
  const DeferredActivations shared =
      deferred_activations(model, {.tensor_parallel = 4, .sequence_parallel = true}, workload, Detail::paper);
  CHECK(shared.kinds[0].bytes == Bytes(8 * boundary));
}

TEST_CASE("memory: layers that share a checkpoint are all held") {
  const Recomputation recompute{
      .policy = RecomputePolicy::full, .method = RecomputeMethod::uniform, .layers = 3};
  const ModelActivations parts{
      .kinds = {{.plain = {.kept = 10_B, .recomputed = 0_B}, .recomputed = {.kept = 1_B, .recomputed = 9_B}},
                {.position = KindPosition::first},
                {.position = KindPosition::last}}};
  const StagePlace place{.layers = 8, .first = true, .of_kind = {8, 1, 0}, .runs = {{0, 8}}};
  const StageActivations held = with_weight_passes(
      stage_activations(parts, place, recompute),
      {.kinds = {{KindPosition::layer, 5_B}, {KindPosition::first, 2_B}, {KindPosition::last, 7_B}}}, place,
      recompute);
  CHECK(pass_activations(held).deferred == Activations{.layers = 40_B, .embedding = 2_B});
}

}  // namespace
}  // namespace headroom

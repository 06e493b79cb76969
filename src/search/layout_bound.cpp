#include "search/layout_bound.hpp"

#include "headroom/core/counts.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/plan/layer_prices.hpp"
#include "headroom/schedule/makespan.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {
namespace {

// Returns the place of a stage that holds the whole model.
StagePlace whole_model(const ModelLayers& layers, const Strategy& strategy) {
  StagePlace whole{.first = true, .last = true};
  visit_stage_places(layers, strategy, [&](const StagePlace& place) {
    whole.of_kind = whole.layers == 0 ? place.of_kind : whole.of_kind + place.of_kind;
    whole.layers += place.layers;
    whole.runs.insert(whole.runs.end(), place.runs.begin(), place.runs.end());
    whole.predictors.insert(whole.predictors.end(), place.predictors.begin(), place.predictors.end());
  });
  return whole;
}

}  // namespace

// With R_k the time of a microbatch on rank k, T their sum, p ranks and n > p microbatches, 1F1B takes at least
//
//   T + (n - p + M) R_M + sum over k > M of R_k         for each rank M [schedule/makespan.hpp, all q = p - 1]
//
// Weights w_M >= 0 whose sum is 1 and for which w_M (n - p + M) + sum over k < M of w_k is the same for all M exist;
// that is then (n - 1) / p, so the weighted mean of the bounds is T (n + p - 1) / p, however T is divided. Other
// schedules take at least the mean of what ranks compute, n T / p. A pass takes as long as its kernels or its
// launches; the longer of the two sums is no longer than the sum of the longer ones.
Seconds placed_bound(const Layout& layout, const Strategy& strategy) {
  const StagePlace whole = whole_model(layout.layers().layers(), strategy);
  const ModelCost& cost = layout.layers().cost({});
  const ChunkSpans spans =
      chunk_spans(layout.shape(), layout.times_of(stage_cost(cost, whole, {})), {}, 0, layout.overlap_loss());
  const double p = real(layout.shape().ranks);
  const double n = real(layout.shape().microbatches);
  const bool fills = layout.shape().kind == ScheduleKind::one_forward_one_backward && n > p;
  return ((fills ? n + p - 1 : n) / p) * (spans.forward + spans.backward);
}

}  // namespace headroom

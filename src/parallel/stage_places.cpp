#include "headroom/parallel/stage_places.hpp"

#include <algorithm>

namespace headroom {

void visit_stage_places(const ModelLayers& layers, const Strategy& strategy,
                        const std::function<void(const StagePlace&)>& visit) {
  const KindCounts counts = counts_of(layers);
  const std::vector<std::int64_t> by_stage = layers_by_stage(layer_count(layers), strategy);
  StagePlace place;
  auto run = layers.runs.begin();
  std::int64_t taken_of_run = 0;
  for (std::size_t stage = 0; stage < by_stage.size(); ++stage) {
    place.layers = by_stage[stage];
    place.first = stage == 0;
    place.last = stage + 1 == by_stage.size();
    place.of_kind.clear();
    place.predictors.clear();
    for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
      const KindPosition position = layers.kinds[i].position;
      const bool here =
          (position == KindPosition::first && place.first) || (position == KindPosition::last && place.last);
      place.of_kind.push_back(here ? counts[i] : 0);
      if (here && layers.kinds[i].predicts) place.predictors.push_back({i, counts[i]});
    }
    place.runs.clear();
    for (std::int64_t left = place.layers; left > 0;) {
      const bool of_layers = layers.kinds[run->kind].position == KindPosition::layer;
      const std::int64_t taken = of_layers ? std::min(left, run->count - taken_of_run) : 0;
      if (taken > 0) {
        place.of_kind[run->kind] += taken;
        place.runs.push_back({run->kind, taken});
        left -= taken;
        taken_of_run += taken;
      }
      if (!of_layers || taken_of_run == run->count) {
        ++run;
        taken_of_run = 0;
      }
    }
    visit(place);
  }
}

std::vector<StagePlace> stage_places(const ModelLayers& layers, const Strategy& strategy) {
  std::vector<StagePlace> places;
  visit_stage_places(layers, strategy, [&](const StagePlace& place) { places.push_back(place); });
  return places;
}

std::vector<StagePlace> stage_places(const Transformer& model, const Strategy& strategy) {
  return stage_places(layers_of(model), strategy);
}

KindCounts recomputed_of_kind(const StagePlace& place, const Recomputation& recompute) {
  KindCounts counts;
  for (std::size_t i = 0; i < place.of_kind.size(); ++i) counts.push_back(0);
  std::int64_t left = recomputed_layers(place.layers, recompute);
  for (const LayerRun& run : place.runs) {
    const std::int64_t taken = std::min(run.count, left);
    counts[run.kind] += taken;
    left -= taken;
  }
  if (recomputes_all_layers(recompute)) {
    for (const LayerRun& run : place.predictors) counts[run.kind] += run.count;
  }
  return counts;
}

}  // namespace headroom

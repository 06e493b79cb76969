#include "headroom/parallel/stage_places.hpp"

#include <algorithm>

namespace headroom {

std::vector<StagePlace> stage_places(const ModelLayers& layers, const Strategy& strategy) {
  StagePlace none;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) none.of_kind.push_back(0);
  const std::vector<std::int64_t> by_stage = layers_by_stage(layer_count(layers), strategy);
  std::vector<StagePlace> places(by_stage.size(), none);
  places.front().first = true;
  places.back().last = true;
  std::size_t stage = 0;
  for (const LayerRun& run : layers.runs) {
    const KindPosition position = layers.kinds[run.kind].position;
    if (position != KindPosition::layer) {
      (position == KindPosition::first ? places.front() : places.back()).of_kind[run.kind] += run.count;
      continue;
    }
    for (std::int64_t left = run.count; left > 0;) {
      while (places[stage].layers == by_stage[stage]) ++stage;
      const std::int64_t taken = std::min(left, by_stage[stage] - places[stage].layers);
      places[stage].layers += taken;
      places[stage].of_kind[run.kind] += taken;
      places[stage].runs.push_back({run.kind, taken});
      left -= taken;
    }
  }
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
  return counts;
}

}  // namespace headroom

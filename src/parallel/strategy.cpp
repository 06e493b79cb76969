#include "headroom/parallel/strategy.hpp"

#include <algorithm>

namespace headroom {

Recomputation set_apart(const Recomputation& recompute, const Offload& offload) {
  return offload.layers > 0 ? Recomputation{.layers = offload.layers} : recompute;
}

std::int64_t recomputed_layers(std::int64_t layers, const Recomputation& recompute) {
  return recomputes_all_layers(recompute) ? layers : std::min(layers, recompute.layers);
}

std::vector<std::int64_t> layers_by_stage(std::int64_t layers, const Strategy& strategy) {
  if (!strategy.stage_layers.empty()) return strategy.stage_layers;
  const std::int64_t stages = strategy.pipeline_parallel * strategy.virtual_pipeline;
  std::vector<std::int64_t> by_stage(static_cast<std::size_t>(stages), layers / stages);
  const std::int64_t rest = layers % stages;
  for (std::int64_t i = 0; i < rest; ++i) ++by_stage[static_cast<std::size_t>(stages - 2 - i)];
  return by_stage;
}

}  // namespace headroom

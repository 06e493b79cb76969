#include "headroom/model/layer_kinds.hpp"

namespace headroom {

ModelLayers layers_of(const Transformer& model, std::int64_t micro_batch) {
  const Architecture& architecture = model.architecture;
  ModelLayers layers{.tied_embeddings = architecture.tied_embeddings,
                     .boundary = architecture.kernels.residual_dtype};
  layers.kinds.reserve(3);
  layers.kinds.push_back({.name = "layer", .count = symbols::L, .ops = layer_ops(model, micro_batch)});
  layers.kinds.push_back(
      {.name = "embedding", .position = KindPosition::first, .ops = embedding_ops(architecture)});
  layers.kinds.push_back({.name = "head", .position = KindPosition::last, .ops = head_ops(architecture)});
  layers.runs = {{1, 1}, {0, model.layers}, {2, 1}};
  return layers;
}

std::int64_t layer_count(const ModelLayers& layers) {
  std::int64_t count = 0;
  for (const LayerRun& run : layers.runs) {
    if (layers.kinds[run.kind].position == KindPosition::layer) count += run.count;
  }
  return count;
}

}  // namespace headroom

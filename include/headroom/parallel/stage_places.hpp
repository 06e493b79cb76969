// The layers that each virtual stage of a pipeline holds: how many of each kind, in which order, and which
// ends of the model are in the stage.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Position of a virtual stage in the model, and its layers of each kind.
struct StagePlace {
  std::int64_t layers = 0;
  bool first = false;
  bool last = false;
  KindCounts of_kind;
  std::vector<LayerRun> runs = {};        // its layers, in the order of the model
  std::vector<LayerRun> predictors = {};  // layers of multi-token prediction, which follow its layers
  friend bool operator==(const StagePlace&, const StagePlace&) = default;
};

// Returns the place of each of the p m virtual stages, in the order of the model.
std::vector<StagePlace> stage_places(const ModelLayers& layers, const Strategy& strategy);
std::vector<StagePlace> stage_places(const Transformer& model, const Strategy& strategy);
// Calls visit(place) for each virtual stage, in the order of the model, and reuses one value. A search visits
// many stages, most of them alike.
void visit_stage_places(const ModelLayers& layers, const Strategy& strategy,
                        const std::function<void(const StagePlace&)>& visit);

// Returns how many layers of each kind a virtual stage recomputes: the first recomputed_layers() of them.
// Layers of multi-token prediction are included if all layers are recomputed.
KindCounts recomputed_of_kind(const StagePlace& place, const Recomputation& recompute);

}  // namespace headroom

// Which layers each virtual stage of a pipeline holds: how many of each kind, in which order, and which of the
// model's ends stand beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Where a virtual stage lies in the model, and how many of each kind it holds.
struct StagePlace {
  std::int64_t layers = 0;
  bool first = false;
  bool last = false;
  KindCounts of_kind;
  std::vector<LayerRun> runs = {};        // its layers, in the order of the model
  std::vector<LayerRun> predictors = {};  // layers of multi-token prediction, which stand behind them
  friend bool operator==(const StagePlace&, const StagePlace&) = default;
};

// Of every virtual stage, in the order of the model: p m of them.
std::vector<StagePlace> stage_places(const ModelLayers& layers, const Strategy& strategy);
std::vector<StagePlace> stage_places(const Transformer& model, const Strategy& strategy);
// The same one after the other, in one value: a search asks for many, most of them alike.
void visit_stage_places(const ModelLayers& layers, const Strategy& strategy,
                        const std::function<void(const StagePlace&)>& visit);

// How many layers of each kind a virtual stage recomputes: recomputed_layers() of them, from its first on, and those of
// multi-token prediction where that is all of them.
KindCounts recomputed_of_kind(const StagePlace& place, const Recomputation& recompute);

}  // namespace headroom

// Weights and gradients that are whole on a rank only while a pass needs them, where data-parallel ranks divide them: unit by
// unit, of which a layer is one, and the embedding and the head one each or one together [PyTorch FSDP, fully_shard].
//
// While a unit is under way backward a rank has its weights, those of the unit before it, which are gathered ahead, its
// gradients, and what the reduction of the unit after it reads [torch, distributed/fsdp/_fully_shard/_fsdp_param_group.py].
// A forward pass has less.
#pragma once

#include "headroom/hardware/software.hpp"
#include "headroom/memory/stage.hpp"
#include "headroom/memory/state.hpp"

namespace headroom {

// Expects passes that gather weights or reduce gradients (parallel/data_shards.hpp). `parameters` are those of a rank.
ModelUnits model_units(const ModelLayers& layers, const ModelParameters& parameters, const Strategy& strategy,
                       const Workload& workload, const Software& software);

// A virtual stage with what it has whole of divided weights, of which it holds all: the only one of a run.
void set_units(StageActivations& stage, const ModelUnits& units, const StagePlace& place,
               const Recomputation& recompute);

}  // namespace headroom

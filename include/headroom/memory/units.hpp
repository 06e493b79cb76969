// Weights and gradients that are whole on a rank only while a pass needs them, because data-parallel ranks
// shard them. Ranks gather and reduce them unit by unit. A layer is a unit; the embedding and the output
// layer are one unit each, or one together [PyTorch FSDP, fully_shard].
//
// During a unit's backward pass, a rank holds the unit's weights and gradients, the prefetched weights of the
// unit before it, and what the reduction of the unit after it reads [torch,
// distributed/fsdp/_fully_shard/_fsdp_param_group.py]. A forward pass holds less.
#pragma once

#include "headroom/hardware/software.hpp"
#include "headroom/memory/stage.hpp"
#include "headroom/memory/state.hpp"

namespace headroom {

// Returns the units of a model. `parameters` are a rank's. Expects passes that gather weights or reduce
// gradients (parallel/data_shards.hpp).
ModelUnits model_units(const ModelLayers& layers, const ModelParameters& parameters, const Strategy& strategy,
                       const Workload& workload, const Software& software);

// Sets the unit bytes of a virtual stage. Expects the only virtual stage of a run, which holds all of the
// model.
void set_units(StageActivations& stage, const ModelUnits& units, const StagePlace& place,
               const Recomputation& recompute);

}  // namespace headroom

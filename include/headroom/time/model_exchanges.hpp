// Collectives of each unit of a model whose weights or gradients are sharded over data-parallel ranks.
// unit_exchanges.hpp places them beside passes.
#pragma once

#include <cstdint>

#include "headroom/time/unit_exchanges.hpp"

namespace headroom {

// Returns the exchanges of every unit. `parameters` are a rank's.
ModelExchanges model_exchanges(const ModelLayers& layers, const ModelParameters& parameters,
                               const Strategy& strategy, const Workload& workload,
                               std::int64_t devices_per_node, const Performance& performance,
                               const Software& software);

}  // namespace headroom

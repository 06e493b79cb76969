// The collectives of each unit of a model, where data-parallel ranks divide weights or gradients: what unit_exchanges.hpp places
// beside passes.
#pragma once

#include <cstdint>

#include "headroom/time/unit_exchanges.hpp"

namespace headroom {

// `parameters` are those of a rank.
ModelExchanges model_exchanges(const ModelLayers& layers, const ModelParameters& parameters,
                               const Strategy& strategy, const Workload& workload,
                               std::int64_t devices_per_node, const Performance& performance,
                               const Software& software);

}  // namespace headroom

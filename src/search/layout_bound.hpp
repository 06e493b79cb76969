// A lower bound of the time of a layout, whatever it recomputes and however its layers are placed.
#pragma once

#include "headroom/plan/layout.hpp"

namespace headroom {

// Returns a lower bound of the iteration time of every strategy with this data sharding, wherever its layers
// are placed on the pipeline's ranks (search/layers_by_memory.hpp). Expects no recomputation.
Seconds placed_bound(const Layout& layout, const Strategy& strategy);

}  // namespace headroom

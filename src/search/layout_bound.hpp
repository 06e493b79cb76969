// A lower bound of the time of a layout, whatever it recomputes and however its layers are placed.
#pragma once

#include "headroom/plan/layout.hpp"

namespace headroom {

// Returns a time that no strategy with the data sharding of this one takes less than, for any placement of the layers
// on the ranks of the layout's pipeline (search/layers_by_memory.hpp). Expects a strategy without recomputation.
Seconds placed_bound(const Layout& layout, const Strategy& strategy);

}  // namespace headroom

// Lower bounds of the time of a layout, whatever it recomputes.
#pragma once

#include "headroom/plan/composer.hpp"

namespace headroom {

// Returns a time that no strategy with this layout and data sharding takes less than. Expects the layout to be
// the one last set in the composer, and no recomputation.
Seconds layout_bound(Composer& composer, const Strategy& strategy);

// Returns the same for all placements of the layers on the ranks of a pipeline (search/layers_by_memory.hpp).
Seconds placed_bound(Composer& composer, const Strategy& strategy);

}  // namespace headroom

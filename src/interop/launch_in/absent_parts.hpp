// Settings that name parts which a model does not have, and that frameworks pass over.
#pragma once

#include "headroom/interop/launched_run.hpp"

namespace headroom {

// Drops targets of adapters and modules of recomputation that no layer of the model has, with a note.
void drop_absent_parts(LaunchedRun& run);

}  // namespace headroom

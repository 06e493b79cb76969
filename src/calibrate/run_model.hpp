// Model of a published run, from the sizes that the run states.
#pragma once

#include "headroom/calibrate/measured_run.hpp"

namespace headroom {

// Returns the model, using settings where the run states none. Expects a run that lacks nothing its model
// needs.
Transformer model_of(const MeasuredRun& run, const RunSettings& settings);

}  // namespace headroom

// The model that a published run trained, of the sizes that it states.
#pragma once

#include "headroom/calibrate/measured_run.hpp"

namespace headroom {

// With settings that hold for the run beyond its members. The run lacks nothing that its model needs.
Transformer model_of(const MeasuredRun& run, const RunSettings& settings);

}  // namespace headroom

// Predicts a measured transformer layer whose kernels are not fused.
#pragma once

#include <optional>

#include "headroom/calibrate/sample.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// Returns the time of the forward pass, or of the backward pass with recomputation, of one tensor-parallel
// rank under sustained load. Assumes unfused core attention, GeLU, FP32 gradient accumulation in the GEMMs, a
// kernel of its own for layer-norm parameters, collectives without overlap, and no waiting for launches. With
// `ranks` 0, the rank ran alone, without its collectives. Returns nothing for a layer that cannot be split
// so.
std::optional<Seconds> layer_time(const MeasuredLayer& layer, std::int64_t ranks,
                                  const Performance& performance);

}  // namespace headroom

// A measured transformer layer, of kernels that nothing fuses, priced by the time model.
#pragma once

#include <optional>

#include "headroom/calibrate/sample.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// Forward, or backward with what it replays, of one tensor-parallel rank under sustained load: unfused core attention,
// GeLU, fp32 gradients added up in their products, parameters of layer norms in a kernel of their own, collectives that
// overlap with nothing, and a host that is ahead. Where the rank ran alone (`ranks` 0) without its collectives. Nothing
// for a layer that cannot be split so.
std::optional<Seconds> layer_time(const MeasuredLayer& layer, std::int64_t ranks,
                                  const Performance& performance);

}  // namespace headroom

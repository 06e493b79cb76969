// Matrix products of a transformer layer, with cuBLASLt: forward, data-gradient and weight-gradient layouts, batched
// products of attention, at burst clocks and under sustained load.
#pragma once

#include <vector>

#include "session.cuh"

namespace headroom::harness {

void measure_products(const std::vector<Sample>& samples, const Session& session);

}  // namespace headroom::harness

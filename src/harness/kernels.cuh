// Kernels that only move memory, as a transformer layer has them, and kernels that do nothing: what launching costs.
#pragma once

#include <vector>

#include "session.cuh"

namespace headroom::harness {

void measure_kernels(const std::vector<Sample>& samples, const Session& session);

}  // namespace headroom::harness

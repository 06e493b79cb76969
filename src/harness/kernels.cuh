// Kernels that only move memory, as a transformer layer has them, and kernels that do nothing: what launching costs.
#pragma once

#include <cstddef>

#include "report.cuh"

namespace headroom::harness {

std::size_t kernel_samples();
void measure_kernels(Report& report);

}  // namespace headroom::harness

// Matrix products of a transformer layer, with cuBLASLt: forward, data-gradient and weight-gradient layouts, batched
// products of attention, at burst clocks and under sustained load.
#pragma once

#include <cstddef>

#include "report.cuh"

namespace headroom::harness {

std::size_t product_samples();  // that measure_products adds
void measure_products(Report& report);

}  // namespace headroom::harness

// NCCL's collectives over the devices of one node that this process sees, for 2, 4, 8 ... ranks up to all of them.
#pragma once

#include <cstddef>

#include "report.cuh"

namespace headroom::harness {

std::size_t collective_samples(int devices);
void measure_collectives(Report& report, int devices);

}  // namespace headroom::harness

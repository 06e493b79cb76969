// How long something that a stream runs takes: warm-up, repeats, median and spread.
#pragma once

#include <functional>

#include <cuda_runtime.h>

namespace headroom::harness {

struct Timing {
  double median_seconds = 0;
  double spread = 0;  // half the distance between the quartiles, over the median
};

using Work = std::function<void(cudaStream_t)>;

// A burst: some windows of as many launches as fill half a millisecond, recorded as a graph so that the host does not
// hold the device back, after a pause that lets the clock rise.
Timing time_burst(cudaStream_t stream, const Work& work);

// Under a load that has lasted `seconds` before the first window is timed.
Timing time_sustained(cudaStream_t stream, const Work& work, double seconds);

// Without a graph, for work over several devices: launches of `work` between two events of one of its streams.
Timing time_launches(cudaStream_t stream, const std::function<void()>& work,
                     const std::function<void()>& finish);

}  // namespace headroom::harness

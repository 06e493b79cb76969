#include "headroom/time/streaming.hpp"

#include <algorithm>

namespace headroom {

Seconds streaming_time(Bytes bytes, const Performance& performance) {
  const KernelRates& kernels = performance.rates.kernels;
  return std::max(kernels.shortest.value, kernels.launch.value + bytes / streaming_bandwidth(performance));
}

}  // namespace headroom

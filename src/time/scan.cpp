#include "headroom/time/scan.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {

Seconds scan_time(const ScanWork& work, const Performance& performance) {
  const double multiprocessors = real(performance.device.multiprocessors);
  const BytesPerSecond memory = streaming_bandwidth(performance);
  const auto at = [&](BytesPerSecond each) { return std::min(multiprocessors * each, memory); };
  return real(work.kernels) * performance.rates.kernels.launch.value +
         Bytes(work.bytes) / at(work.bandwidth) + Bytes(work.convolved_bytes) / at(convolution_bandwidth) +
         std::max(Bytes(work.bytes_in_steps) / at(work.bandwidth), work.step_time);
}

}  // namespace headroom

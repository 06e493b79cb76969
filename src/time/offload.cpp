#include "headroom/time/offload.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"

namespace headroom {

Seconds total(const OffloadedStep& step, const Offload& offload) {
  if (offload.overlaps) return std::max({step.device, step.gradients, step.host, step.weights});
  return step.device + step.gradients + step.host + step.weights;
}

double host_step_bytes(const Optimizer& optimizer) {
  constexpr auto fp32 = static_cast<double>(size_of(Dtype::fp32));
  constexpr auto half = static_cast<double>(size_of(Dtype::half));
  return fp32 + 2 * (size_of(optimizer.main_params) + moments_size(optimizer)) + half;
}

BytesPerSecond link_of(const Host& host, std::int64_t devices) {
  return std::min(host.device_link, host.memory_bandwidth / real(devices));
}

OffloadedStep offloaded_step(const Parameters& parameters, const Strategy& strategy, const Workload& workload,
                             Seconds on_device, Seconds around, const Software& software, const Host& host,
                             std::int64_t devices) {
  const double fraction = strategy.offload.optimizer.value;
  const double stepped = fraction * stepped_by_rank(parameters, strategy);
  const BytesPerSecond link = link_of(host, devices);
  // Passes send gradients and fetch weights themselves if the host keeps the shards.
  const bool sends = !strategy.offload.parameters || !reduces_in_passes(strategy, workload, software);
  const bool fetches = !strategy.offload.parameters;
  const Bytes moved_by_host(real(devices) * stepped * host_step_bytes(strategy.optimizer));
  return {.device = around + (1 - fraction) * (on_device - around),
          .gradients =
              sends ? gradient_bytes(stepped, stepped_gradient_dtype(strategy, software)) / link : Seconds(0),
          .host = moved_by_host / host.memory_bandwidth,
          .weights = fetches ? Bytes(stepped * real(size_of(Dtype::half))) / link : Seconds(0)};
}

}  // namespace headroom

#include "headroom/time/exchange.hpp"

#include <algorithm>

namespace headroom {
namespace {

Seconds exchange_time(Bytes wire, Bytes copied, const CollectiveRates& rates) {
  const Bytes at_ring = copied * (rates.ring_bandwidth.value / rates.local_bandwidth.value);
  const Seconds low_latency = rates.low_latency_launch.value + rates.low_latency_step.value +
                              (wire + at_ring) / rates.low_latency_bandwidth.value;
  const Seconds ring = rates.ring_launch.value + rates.ring_step.value + wire / rates.ring_bandwidth.value +
                       copied / rates.local_bandwidth.value;
  return std::min(low_latency, ring);
}

}  // namespace

Seconds all_to_all_time(Bytes bytes, std::int64_t ranks, const CollectiveRates& rates) {
  const Bytes shard = bytes / static_cast<double>(ranks);
  return exchange_time(bytes - shard, shard, rates);
}

Seconds send_receive_time(Bytes bytes, const CollectiveRates& rates) {
  return exchange_time(bytes, Bytes(0), rates);
}

}  // namespace headroom

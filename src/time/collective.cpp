#include "headroom/time/collective.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"

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

// A sender's share of the adapters, with so many at once in a node.
BytesPerSecond bandwidth_of_sender(std::int64_t senders, const Performance& performance) {
  const Network& network = performance.network;
  return performance.rates.network.link_share.value *
         std::min(network.adapter_bandwidth, node_bandwidth(network) / real(senders));
}

// Straight from device to device, over nodes.
Seconds exchange_between_nodes(CollectiveKind kind, Bytes bytes, const Group& group,
                               const Performance& performance) {
  const CollectiveRates& rates = performance.rates.collectives;
  const NetworkRates& network = performance.rates.network;
  const bool to_all = kind == CollectiveKind::all_to_all;
  const Bytes leaving =
      to_all ? bytes * (real(group.ranks - group.ranks_in_node) / real(group.ranks)) : bytes;
  const Bytes staying = to_all ? bytes * (real(group.ranks_in_node - 1) / real(group.ranks)) : Bytes(0);
  const BytesPerSecond link = bandwidth_of_sender(group.rings_per_node * group.ranks_in_node, performance);
  return rates.ring_launch.value + rates.ring_step.value + network.step.value +
         std::max(staying / rates.ring_bandwidth.value, leaving / link);
}

}  // namespace

Seconds all_to_all_time(Bytes bytes, std::int64_t ranks, const CollectiveRates& rates) {
  const Bytes shard = bytes / real(ranks);
  return exchange_time(bytes - shard, shard, rates);
}

Seconds send_receive_time(Bytes bytes, const CollectiveRates& rates) {
  return exchange_time(bytes, Bytes(0), rates);
}

Seconds collective_time(CollectiveKind kind, Bytes bytes, const Group& group,
                        const Performance& performance) {
  if (group.ranks <= 1 || kind == CollectiveKind::none) return Seconds(0);
  const CollectiveRates& rates = performance.rates.collectives;
  if (kind == CollectiveKind::pipeline_send) {
    return group.ranks_in_node > 1 ? bytes / rates.ring_bandwidth.value
                                   : bytes / bandwidth_of_sender(group.rings_per_node, performance);
  }
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_receive) {
    if (group.ranks > group.ranks_in_node) return exchange_between_nodes(kind, bytes, group, performance);
    return kind == CollectiveKind::all_to_all ? all_to_all_time(bytes, group.ranks, rates)
                                              : send_receive_time(bytes, rates);
  }
  const NetworkRates& between_nodes = performance.rates.network;
  const Network& network = performance.network;
  const double ranks = real(group.ranks);
  const double phases = ring_passes(kind);
  const double steps = phases * (ranks - 1);
  const Bytes wire = steps / ranks * bytes;
  const Bytes shard = bytes / ranks;

  if (group.ranks <= group.ranks_in_node) {
    const Bytes copied = shard * (rates.ring_bandwidth.value / rates.local_bandwidth.value);
    const Seconds low_latency = rates.low_latency_launch.value + steps * rates.low_latency_step.value +
                                (wire + copied) / rates.low_latency_bandwidth.value;
    const Seconds ring = rates.ring_launch.value + steps * rates.ring_step.value +
                         wire / rates.ring_bandwidth.value + shard / rates.local_bandwidth.value;
    return std::min(low_latency, ring);
  }
  const double nodes = ranks / real(group.ranks_in_node);
  const double share =
      (group.rings_per_node == 1 ? between_nodes.link_share : between_nodes.ring_share).value;
  const BytesPerSecond bandwidth = std::min(
      rates.ring_bandwidth.value, share * std::min(node_bandwidth(network) / real(group.rings_per_node),
                                                   network.adapter_bandwidth * real(group.ranks_in_node)));
  return rates.ring_launch.value + steps * rates.ring_step.value +
         phases * (nodes - 1) * between_nodes.step.value + wire / bandwidth;
}

bool within_fit(Bytes bytes, const Group& group, const CollectiveRates& rates) {
  if (group.ranks <= 1 || bytes == Bytes(0)) return true;
  return holds(rates.fitted_ranks, real(group.ranks)) && holds(rates.fitted_bytes, bytes.count());
}

Seconds exposed_beside(Seconds product, Seconds collective, const CollectiveRates& rates) {
  return std::max(collective, product + rates.overlap_loss.value * collective) - product;
}

std::vector<Seconds> send_times(const Transformer& model, const Strategy& strategy, const Workload& workload,
                                std::int64_t devices_per_node, const Performance& performance,
                                const Software& software) {
  std::vector<Seconds> times;
  if (strategy.pipeline_parallel == 1) return times;
  const Bytes whole(real(workload.sequence * strategy.micro_batch * model.hidden) *
                    real(size_of(model.architecture.kernels.residual_dtype)));
  const Bytes sent = whole / real(strategy.tensor_parallel);
  Seconds fixed = performance.rates.network.send_synchronization.value;
  if (!strategy.sequence_parallel) {
    const Group receivers = tensor_parallel_group(strategy, devices_per_node);
    fixed += collective_time(CollectiveKind::all_gather, whole, receivers, performance);
  }
  const double turns = software.serial_transfers ? 2 : 1;
  const AxisSizes sizes = axis_sizes(strategy);
  for (std::int64_t rank = 0; rank < strategy.pipeline_parallel; ++rank) {
    const Group link = pipeline_link(sizes, rank, devices_per_node);
    times.push_back(turns *
                    (fixed + collective_time(CollectiveKind::pipeline_send, sent, link, performance)));
  }
  return times;
}

}  // namespace headroom

#include "headroom/time/collective.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"

namespace headroom {
namespace {

// Devices that share a pipeline rank: the pipeline axis is the last of the grid.
std::int64_t devices_of_stage(const Strategy& strategy) {
  return devices(strategy) / strategy.pipeline_parallel;
}

// Whether every device of a pipeline rank shares a node with its peer on the next rank, from the last one round to the
// first.
bool same_node(const Strategy& strategy, std::int64_t rank, std::int64_t devices_per_node) {
  const std::int64_t stage = devices_of_stage(strategy);
  if (stage >= devices_per_node) return false;
  const std::int64_t next = (rank + 1) % strategy.pipeline_parallel;
  for (std::int64_t device = 0; device < stage; ++device) {
    if ((rank * stage + device) / devices_per_node != (next * stage + device) / devices_per_node)
      return false;
  }
  return true;
}

Seconds exchange_time(Bytes wire, Bytes copied, const CollectiveRates& rates) {
  const Bytes at_ring = copied * (rates.ring_bandwidth.value / rates.local_bandwidth.value);
  const Seconds low_latency = rates.low_latency_launch.value + rates.low_latency_step.value +
                              (wire + at_ring) / rates.low_latency_bandwidth.value;
  const Seconds ring = rates.ring_launch.value + rates.ring_step.value + wire / rates.ring_bandwidth.value +
                       copied / rates.local_bandwidth.value;
  return std::min(low_latency, ring);
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
  const std::int64_t senders = group.rings_per_node * group.ranks_in_node;
  const BytesPerSecond link =
      network.link_share.value *
      std::min(performance.network.adapter_bandwidth, node_bandwidth(performance.network) / real(senders));
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
  const std::int64_t stage = devices_of_stage(strategy);
  const CollectiveRates& collectives = performance.rates.collectives;
  const NetworkRates& network = performance.rates.network;

  Seconds fixed = network.send_synchronization.value;
  if (!strategy.sequence_parallel) {
    const Group receivers = tensor_parallel_group(strategy, devices_per_node);
    fixed += collective_time(CollectiveKind::all_gather, whole, receivers, performance);
  }
  const Seconds in_node = fixed + sent / collectives.ring_bandwidth.value;
  const std::int64_t senders = std::min(stage, devices_per_node);
  const BytesPerSecond link =
      network.link_share.value *
      std::min(performance.network.adapter_bandwidth, node_bandwidth(performance.network) / real(senders));
  const Seconds between_nodes = fixed + sent / link;
  for (std::int64_t rank = 0; rank < strategy.pipeline_parallel; ++rank) {
    const double turns = software.serial_transfers ? 2 : 1;
    times.push_back(turns * (same_node(strategy, rank, devices_per_node) ? in_node : between_nodes));
  }
  return times;
}

}  // namespace headroom

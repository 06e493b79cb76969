#include "headroom/time/collective.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/counts.hpp"

namespace headroom {
namespace {

// Returns the bandwidth of a ring through `ranks` devices of a node. Directly linked devices are on as many
// rings at once as each has peers among them.
BytesPerSecond ring_bandwidth(double ranks, const Performance& performance) {
  return share_of_links(performance.device, ranks) * performance.rates.collectives.ring_bandwidth.value;
}

// Returns the bytes over all links of a device that take as long as `wire` over those to `ranks` devices.
Bytes over_all_links(Bytes wire, double ranks, const Performance& performance) {
  return wire / share_of_links(performance.device, ranks);
}

// `speed` is a factor on all bandwidths.
Seconds exchange_time(Bytes wire, Bytes copied, const CollectiveRates& rates, double speed = 1) {
  const Bytes at_ring = copied * (rates.ring_bandwidth.value / rates.local_bandwidth.value);
  const Seconds low_latency = rates.low_latency_launch.value + rates.low_latency_step.value +
                              (wire + at_ring) / (speed * rates.low_latency_bandwidth.value);
  const Seconds ring = rates.ring_launch.value + rates.ring_step.value +
                       wire / (speed * rates.ring_bandwidth.value) +
                       copied / (speed * rates.local_bandwidth.value);
  return std::min(low_latency, ring);
}

// Returns the line rate of one sender's NICs while `senders` devices of a node send, neighbours first.
BytesPerSecond line_rate(const Network& network, std::int64_t senders) {
  const double nics = std::ceil(real(senders) * network.nics_per_device);
  return network.nic_bandwidth * (nics / real(senders));
}

// Returns the factor by which switches above the leaves slow a group that keeps to a rail. It is 1 within a
// leaf switch. Beyond one, the nodes of a leaf (L) send up if their neighbour, nodes_apart further, is in
// another leaf. L / oversubscription of them find a link each.
double slowed_by_spines(const Network& network, const Group& group) {
  const std::int64_t leaf = nodes_of_leaf(network);
  if (group.nodes_spanned <= leaf) return 1;
  const double sent_up = real(std::min(group.nodes_apart, leaf)) / real(leaf);
  return std::max(1.0, sent_up * network.oversubscription.value);
}

// Returns the share of the line rate that arrives. Rings keep to their devices' rails if rails are aligned.
// An all-to-all leaves its rail, as does all traffic on shared rails.
double delivered(const Performance& performance, bool several_rings, bool leaves_rail, const Group& group) {
  const NetworkRates& rates = performance.rates.network;
  const Network& network = performance.network;
  const bool shared = network.rails.value == Rails::shared;
  const double reached = (several_rings && shared ? rates.shared_nic_efficiency : rates.nic_efficiency).value;
  return reached /
         (shared || leaves_rail ? network.oversubscription.value : slowed_by_spines(network, group));
}

BytesPerSecond bandwidth_of_sender(std::int64_t senders, bool leaves_rail, const Group& group,
                                   const Performance& performance) {
  return delivered(performance, /*several_rings=*/false, leaves_rail, group) *
         line_rate(performance.network, senders);
}

// A direct exchange between devices over nodes. Bytes within a node move beside those that leave it.
struct Exchanged {
  Seconds start;
  Seconds within;
  Bytes leaving;
};

Seconds exchange_between_nodes(const Exchanged& sent, bool leaves_rail, const Group& group,
                               const Performance& performance) {
  const BytesPerSecond link =
      bandwidth_of_sender(group.rings_per_node * group.ranks_in_node, leaves_rail, group, performance);
  return sent.start + performance.rates.network.step.value + std::max(sent.within, sent.leaving / link);
}

Seconds direct_start(const CollectiveRates& rates) { return rates.ring_launch.value + rates.ring_step.value; }

Bytes leaving_node(Bytes bytes, const Group& group) {
  return bytes * ((real(group.ranks) - real(group.ranks_in_node)) / real(group.ranks));
}

Seconds all_to_all_over_nodes(Bytes bytes, const Group& group, const Performance& performance) {
  const CollectiveRates& rates = performance.rates.collectives;
  const double in_node = real(group.ranks_in_node);
  const Bytes staying = bytes * ((in_node - 1) / real(group.ranks));
  return exchange_between_nodes(
      {.start = direct_start(rates),
       .within = staying / (rates.all_to_all.value * ring_bandwidth(in_node, performance)),
       .leaving = leaving_node(bytes, group)},
      /*leaves_rail=*/true, group, performance);
}

// Speed of kernels that send a token once to each node: half of their multiprocessors forward what arrived
// over the NICs. DeepEP's kernels each move 10.5 GB/s of received bytes over two or more nodes, and 20.6 GB/s
// within one (docs/networks.md).
constexpr double beside_forwarding = 0.5;

}  // namespace

Seconds routed_time(const TokenRoute& route, Bytes bytes, const Group& group,
                    const Performance& performance) {
  const CollectiveRates& rates = performance.rates.collectives;
  const bool over_nodes = group.ranks > group.ranks_in_node;
  const bool measured = route.from_others > BytesPerSecond(0);
  if (!over_nodes && route.kernel == nullptr && !measured)
    return all_to_all_time(bytes, group.ranks, performance);
  const double speed = over_nodes ? beside_forwarding : 1;
  // All copies are forwarded to their ranks, except those that arrived at the right rank.
  const double in_node = real(group.ranks_in_node);
  Exchanged sent{.start = direct_start(rates),
                 .within = bytes * ((in_node - 1) / in_node) /
                           (measured ? route.from_others
                                     : speed * rates.all_to_all.value * ring_bandwidth(in_node, performance)),
                 .leaving = route.nodes_of_ranks * leaving_node(bytes, group)};
  if (const TokenKernelRates* const kernel = route.kernel) {
    sent.start = kernel->launch.value + route.tokens * kernel->token.value;
    sent.within = bytes / (speed * kernel->receive_bandwidth.value);
  }
  return over_nodes ? exchange_between_nodes(sent, /*leaves_rail=*/true, group, performance)
                    : sent.start + sent.within;
}

Seconds all_to_all_time(Bytes bytes, std::int64_t ranks, const Performance& performance) {
  const CollectiveRates& rates = performance.rates.collectives;
  const Bytes shard = bytes / real(ranks);
  return exchange_time(over_all_links(bytes - shard, real(ranks), performance), shard, rates,
                       rates.all_to_all.value);
}

Seconds send_receive_time(Bytes bytes, const Performance& performance) {
  return exchange_time(over_all_links(bytes, 2, performance), Bytes(0), performance.rates.collectives);
}

namespace {

// Returns the time of the sends that bring the parts of all ranks past each rank. Between nodes, the slowest
// send goes from the last rank of a node to the first of the next, one for every ring with ranks in the node.
Seconds ring_time(Bytes bytes, const Group& group, const Performance& performance) {
  const Bytes part = bytes / real(group.ranks);
  Group neighbours = group;
  neighbours.ranks = 2;
  neighbours.ranks_in_node = 1;
  if (group.ranks <= group.ranks_in_node) neighbours.ranks_in_node = 2;
  return real(group.ranks - 1) * collective_time(CollectiveKind::send_receive, part, neighbours, performance);
}

Seconds low_latency_time(CollectiveKind kind, Bytes bytes, double ranks, const Performance& performance) {
  const CollectiveRates& rates = performance.rates.collectives;
  const double steps = ring_passes(kind) * (ranks - 1);
  const Bytes copied = bytes / ranks * (rates.ring_bandwidth.value / rates.local_bandwidth.value);
  const Bytes wire = over_all_links(steps / ranks * bytes, ranks, performance);
  return rates.low_latency_launch.value + steps * rates.low_latency_step.value +
         (wire + copied) / rates.low_latency_bandwidth.value;
}

// Returns the time that switches take to sum an all-reduce's bytes.
Seconds switch_time(Bytes bytes, double ranks, const NvlsRates& rates) {
  return (1 + 1 / ranks) * bytes / rates.switch_bandwidth.value;
}

// Returns the time of an all-gather, a reduce-scatter or an all-reduce between devices of a node.
Seconds time_in_node(CollectiveKind kind, Bytes bytes, double ranks, const Performance& performance) {
  const CollectiveRates& rates = performance.rates.collectives;
  const double steps = ring_passes(kind) * (ranks - 1);
  const Bytes wire = steps / ranks * bytes;
  const Seconds ring = rates.ring_launch.value + steps * rates.ring_step.value +
                       wire / ring_bandwidth(ranks, performance) +
                       bytes / ranks / rates.local_bandwidth.value;
  const Seconds between_devices = std::min(low_latency_time(kind, bytes, ranks, performance), ring);
  if (kind != CollectiveKind::all_reduce || !rates.nvls) return between_devices;
  return std::min(between_devices, rates.nvls->launch.value + switch_time(bytes, ranks, *rates.nvls));
}

// Returns the latency of going up and down a tree of nodes.
Seconds levels_time(double nodes, const Performance& performance) {
  return 2 * std::ceil(std::log2(nodes)) * performance.rates.network.step.value;
}

Seconds time_over_nodes(CollectiveKind kind, Bytes bytes, const Group& group,
                        const Performance& performance) {
  const CollectiveRates& rates = performance.rates.collectives;
  const double ranks = real(group.ranks);
  const double ranks_in_node = real(group.ranks_in_node);
  const double nodes = ranks / ranks_in_node;
  const double phases = ring_passes(kind);
  const Seconds step = performance.rates.network.step.value;
  const BytesPerSecond line = line_rate(performance.network, group.rings_per_node * group.ranks_in_node);
  const bool several = group.rings_per_node > 1;
  const BytesPerSecond through_nics =
      delivered(performance, several, /*leaves_rail=*/false, group) * (ranks_in_node * line);
  const Seconds ring = rates.ring_launch.value + phases * (ranks - 1) * rates.ring_step.value +
                       phases * (nodes - 1) * step +
                       phases * (ranks - 1) / ranks * bytes /
                           std::min(ring_bandwidth(ranks_in_node, performance), through_nics);
  if (kind != CollectiveKind::all_reduce) return ring;
  if (!rates.nvls || group.ranks_in_node == 1) return ring;
  const Seconds of_sums = rates.nvls->launch.value + levels_time(nodes, performance) +
                          std::max(switch_time(bytes, ranks_in_node, *rates.nvls),
                                   phases * (nodes - 1) / nodes * bytes / through_nics);
  return std::min(ring, of_sums);
}

}  // namespace

Seconds collective_time(CollectiveKind kind, Bytes bytes, const Group& group,
                        const Performance& performance) {
  if (group.ranks <= 1 || kind == CollectiveKind::none) return Seconds(0);
  if (kind == CollectiveKind::pipeline_send) {
    return group.ranks_in_node > 1
               ? bytes / ring_bandwidth(2, performance)
               : bytes / bandwidth_of_sender(group.rings_per_node, /*leaves_rail=*/false, group, performance);
  }
  const bool over_nodes = group.ranks > group.ranks_in_node;
  if (kind == CollectiveKind::all_to_all) {
    return over_nodes ? all_to_all_over_nodes(bytes, group, performance)
                      : all_to_all_time(bytes, group.ranks, performance);
  }
  if (kind == CollectiveKind::send_receive) {
    return over_nodes ? exchange_between_nodes(
                            {.start = direct_start(performance.rates.collectives), .leaving = bytes},
                            /*leaves_rail=*/false, group, performance)
                      : send_receive_time(bytes, performance);
  }
  if (kind == CollectiveKind::ring) return ring_time(bytes, group, performance);
  return over_nodes ? time_over_nodes(kind, bytes, group, performance)
                    : time_in_node(kind, bytes, real(group.ranks), performance);
}

Seconds small_all_reduce_time(Bytes bytes, const Group& group, const Performance& performance) {
  Group in_node = group;
  in_node.ranks = std::min(group.ranks, group.ranks_in_node);
  const Seconds within = in_node.ranks > 1 || group.ranks == 1
                             ? collective_time(CollectiveKind::all_reduce, bytes, in_node, performance)
                             : performance.rates.collectives.ring_launch.value;
  return within + levels_time(real(group.ranks) / real(in_node.ranks), performance);
}

bool within_fit(Bytes bytes, const Group& group, const CollectiveRates& rates) {
  if (group.ranks <= 1 || bytes == Bytes(0)) return true;
  return holds(rates.fitted_ranks, real(group.ranks)) && holds(rates.fitted_bytes, bytes.count());
}

Seconds exposed_beside(Seconds product, Seconds collective, const CollectiveRates& rates) {
  return std::max(collective, product + rates.overlap_loss.value * collective) - product;
}

double exchange_loss(Dispatcher dispatcher, const Performance& performance) {
  const std::int64_t held = multiprocessors_of(dispatcher);
  if (held == 0) return performance.rates.collectives.overlap_loss.value;
  return real(held) / real(performance.device.multiprocessors);
}

std::vector<Seconds> send_times(const Transformer& model, const Strategy& strategy, const Workload& workload,
                                std::int64_t devices_per_node, const Performance& performance,
                                const Software& software) {
  std::vector<Seconds> times;
  if (strategy.pipeline_parallel == 1) return times;
  // Bytes of the tokens of a context-parallel rank.
  const Bytes whole(real(workload.sequence * strategy.micro_batch * model.hidden) /
                    real(strategy.context_parallel) *
                    real(size_of(model.architecture.kernels.residual_dtype)));
  const Bytes sent = whole / real(strategy.tensor_parallel);
  const Rates& rates = performance.rates;
  // An overlapped transfer waits for no rank. It costs the time that it takes from the kernels beside it.
  const bool beside = software.overlap_p2p && strategy.virtual_pipeline > 1;
  const double shown = beside ? rates.collectives.overlap_loss.value : 1;
  Seconds fixed = beside ? Seconds(0) : rates.network.send_synchronization.value;
  if (!strategy.sequence_parallel) {
    const Group receivers = tensor_parallel_group(strategy, devices_per_node);
    fixed += collective_time(CollectiveKind::all_gather, whole, receivers, performance);
  }
  const double turns = software.serial_transfers ? 2 : 1;
  const AxisSizes sizes = axis_sizes(strategy);
  for (std::int64_t rank = 0; rank < strategy.pipeline_parallel; ++rank) {
    const Group link = pipeline_link(sizes, rank, devices_per_node);
    times.push_back(
        turns * (fixed + shown * collective_time(CollectiveKind::pipeline_send, sent, link, performance)));
  }
  return times;
}

}  // namespace headroom

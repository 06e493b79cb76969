// Time of collectives and of point-to-point transfers, by kind, bytes and where the ranks are.
//
// In a node, over r ranks; phases = 2 for an all-reduce, else 1; steps = phases (r - 1); wire = steps/r bytes:
//   low latency   launch + steps * step + (wire + shard * ring/local) / low-latency bandwidth
//   ring          launch + steps * step + wire / ring bandwidth + shard / local bandwidth        the faster runs
// An all-reduce takes what is fastest of these and, where switches sum (NVLS):
//   NVLS          launch + (1 + 1/r) bytes / switch bandwidth: a rank sends all that it has, which the switch sums up, and its
//                 part of the sums, which the switch hands to all
// Between nodes a ring goes through the NICs of its ranks in each node, and shares those that other devices use too:
//   ring launch + steps * ring step + phases * (nodes - 1) * network step + wire / bandwidth of the ring's NICs
//   bandwidth = line rate x efficiency: of NICs that no other ring uses where rails are aligned or the node has one ring,
//   else of NICs that rings share, and that over the oversubscription
// Where switches sum, an all-reduce may also go up and down a tree of the nodes (NVLSTree), which takes few steps and of two nodes
// half of the ring's bytes through the NICs, for only sums pass:
//   launch + 2 ceil(log2 nodes) * network step + the longer of (1 + 1/ranks of a node) bytes / switch bandwidth and
//   2 (nodes - 1)/nodes bytes / bandwidth of the NICs
//
// An all-to-all and a send go straight from one device to the other, through the switch of a node, in which every pair
// has its own path. They need one step, whatever the number of ranks, in one of the same two protocols:
//   launch + step + wire / bandwidth [+ shard / local bandwidth]        the faster runs
//   all-to-all: wire = (r - 1)/r of a rank's bytes, and its own shard is copied; send: wire = bytes
// All bandwidths of an all-to-all are those of a ring times `all_to_all`: NCCL makes it of sends and receives.
// Between nodes (assumed, not measured): ring launch + ring step + network step + the longer of what stays in the node
// at the ring's bandwidth and what leaves it at a sender's share of the NICs.
//
// Where a token's copies go once to each node, whose ranks hand them on over their own links (DeepEP, HybridEP), what leaves is
// the share of copies that nodes are of ranks, and all that a rank is handed is at half of the ring's bandwidth, for half of the
// multiprocessors forward (docs/networks.md has what was measured). DeepEP's kernels have rates of their own where they were
// measured: a launch and a time for each token, beside the bytes at their bandwidth.
//
// A ring of context-parallel ranks is (r - 1) sends of a rank's part, one after the other.
//
// A pipeline's send is bandwidth alone, the ring's in a node and a sender's share of the NICs between nodes: what its
// two ranks take to meet was measured with it, and send_times() adds it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

inline Group tensor_parallel_group(const Strategy& strategy, std::int64_t devices_per_node) {
  return group_along(grid_of(axis_sizes(strategy)), ParallelAxis::tensor, devices_per_node);
}
// The ranks that hold the same weights of a class.
inline Group data_parallel_group(const Strategy& strategy, std::int64_t devices_per_node,
                                 WeightClass weights = WeightClass::dense) {
  return replica_group(axis_sizes(strategy), weights, devices_per_node);
}
// The first and the last pipeline rank, which hold the same word embedding.
inline Group tied_embedding_group(const Strategy& strategy, std::int64_t devices_per_node) {
  return ends_group(axis_sizes(strategy), devices_per_node);
}

// `bytes` are those of the whole tensor: an all-gather's result, a reduce-scatter's input, all that goes round a ring; of an all-to-all and a send
// those that a rank holds before it. Nothing for one rank.
Seconds collective_time(CollectiveKind kind, Bytes bytes, const Group& group, const Performance& performance);

// An all-to-all whose tokens go once to each rank of their experts, and to its node.
struct TokenRoute {
  double nodes_of_ranks = 1;                 // nodes that the experts of a token are in, over their ranks
  double tokens = 0;                         // that a rank has, where `kernel` counts them
  const TokenKernelRates* kernel = nullptr;  // whose rates hold; null: those of any all-to-all
};
// `bytes` are those that a rank receives in the dispatch, or sends in the combine.
Seconds routed_time(const TokenRoute& route, Bytes bytes, const Group& group, const Performance& performance);

// An all-reduce of so few bytes that latency is all there is to it: within the nodes, and up and down a tree of them, which NCCL prefers to
// its rings for these.
Seconds small_all_reduce_time(Bytes bytes, const Group& group, const Performance& performance);

// In a node.
Seconds all_to_all_time(Bytes bytes, std::int64_t ranks, const CollectiveRates& rates);
Seconds send_receive_time(Bytes bytes, const CollectiveRates& rates);

bool within_fit(Bytes bytes, const Group& group, const CollectiveRates& rates);

// A matrix product with a collective beside it, which takes multiprocessors and memory bandwidth from it:
// max(collective, product + overlap_loss * collective). Seconds beyond the product itself.
Seconds exposed_beside(Seconds product, Seconds collective, const CollectiveRates& rates);

// How long a transfer of one microbatch keeps pipeline rank r from going on, where it sends to rank r + 1 (mod p) or
// receives that rank's gradient: entry r. Each tensor-parallel rank sends 1/t and the receivers gather [Megatron-LM,
// --scatter-gather-tensors-in-pipeline]. Transfers are blocking, unless the stack overlaps those between virtual stages:
// they are taken to be shorter than the passes beside them, which is for the caller to see. Empty when p = 1.
std::vector<Seconds> send_times(const Transformer& model, const Strategy& strategy, const Workload& workload,
                                std::int64_t devices_per_node, const Performance& performance,
                                const Software& software);

}  // namespace headroom

// Time of collectives and point-to-point transfers, by kind, bytes and the places of the ranks.
//
// Within a node, over r ranks: phases = 2 for an all-reduce, else 1; steps = phases (r - 1); wire = steps/r
// bytes. The faster of two protocols runs:
//   low latency   launch + steps * step + (wire + shard * ring/local) / low-latency bandwidth
//   ring          launch + steps * step + wire / ring bandwidth + shard / local bandwidth
// Directly linked devices, such as eight MI300X, have one link to each of the others. A group of r then has
// (r - 1)/peers of the node's ring and low-latency bandwidths: a pair has one link of seven.
//
// If the switches can sum (NVLS), an all-reduce takes the fastest of these two and:
//   NVLS          launch + (1 + 1/r) bytes / switch bandwidth
// A rank sends all its bytes, which the switch sums, and its part of the sums, which the switch hands to all
// ranks.
//
// Between nodes a ring goes through the NICs of its ranks in each node. It shares NICs that other devices use
// too:
//   ring launch + steps * ring step + phases * (nodes - 1) * network step + wire / bandwidth of ring's NICs
//   bandwidth = line rate x efficiency
// The efficiency is that of an unshared NIC if rails are aligned or the node has one ring. Otherwise it is
// that of shared NICs, and the bandwidth is divided by the oversubscription.
//
// If switches sum, an all-reduce may also go up and down a tree of the nodes (NVLSTree). The tree takes few
// steps. With two nodes it sends half of the ring's bytes through the NICs, because only sums pass:
//   launch + 2 ceil(log2 nodes) * network step + the longer of
//   (1 + 1/ranks of a node) bytes / switch bandwidth and 2 (nodes - 1)/nodes bytes / bandwidth of the NICs
//
// All-to-alls and sends go straight from one device to the other, through a node's switch, where every pair
// has its own path. They take one step for any number of ranks, in the faster of the same two protocols:
//   launch + step + wire / bandwidth [+ shard / local bandwidth]
//   all-to-all: wire = (r - 1)/r of a rank's bytes, and its own shard is copied; send: wire = bytes
// Bandwidths of an all-to-all are those of a ring times `all_to_all`, because NCCL builds it from sends and
// receives. Between nodes the time is assumed, not measured:
//   ring launch + ring step + network step + the longer of
//   bytes within the node / ring bandwidth and bytes that leave it / a sender's share of the NICs
//
// DeepEP and HybridEP send a token's copies once to each node, whose ranks forward them over their own links.
// The bytes that leave are the share of copies that nodes are of ranks. All bytes that a rank receives move
// at half of the ring's bandwidth, because half of the multiprocessors forward (measurements:
// docs/networks.md). Where DeepEP's kernels were measured, they have rates of their own: a launch and a time
// for each token, beside the bytes at their bandwidth.
//
// A ring of context-parallel ranks is (r - 1) sends of a rank's part, one after the other.
//
// A pipeline's send counts bandwidth alone: the ring's in a node, a sender's share of the NICs between nodes.
// The time that its two ranks take to meet was measured with the send; send_times() adds it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

inline Group tensor_parallel_group(const Strategy& strategy, std::int64_t devices_per_node) {
  return group_along(grid_of(axis_sizes(strategy)), ParallelAxis::tensor, devices_per_node);
}
// Returns the group of ranks that hold the same weights of a class.
inline Group data_parallel_group(const Strategy& strategy, std::int64_t devices_per_node,
                                 WeightClass weights = WeightClass::dense) {
  return replica_group(axis_sizes(strategy), weights, devices_per_node);
}
// Returns the group of the first and the last pipeline rank, which hold the same word embedding.
inline Group tied_embedding_group(const Strategy& strategy, std::int64_t devices_per_node) {
  return ends_group(axis_sizes(strategy), devices_per_node);
}

// Returns the time of a collective; zero for one rank. `bytes` count the whole tensor: an all-gather's
// result, a reduce-scatter's input, all that goes round a ring. For an all-to-all and a send they count what
// a rank holds before it.
Seconds collective_time(CollectiveKind kind, Bytes bytes, const Group& group, const Performance& performance);

// An all-to-all that sends a token once to each rank, or node, of its experts.
struct TokenRoute {
  double nodes_of_ranks = 1;                 // nodes of a token's experts, over their ranks
  double tokens = 0;                         // tokens of a rank, if `kernel` counts them
  const TokenKernelRates* kernel = nullptr;  // measured kernel; null: rates of any all-to-all
  BytesPerSecond from_others;  // measured, between a rank and the others of its node; 0: not measured
};
// Returns the time of a routed all-to-all. `bytes` count what a rank receives in the dispatch, or sends in
// the combine.
Seconds routed_time(const TokenRoute& route, Bytes bytes, const Group& group, const Performance& performance);

// Returns the time of an all-reduce so small that only latency counts. It runs within the nodes and up and
// down a tree of them, which NCCL prefers to rings at this size.
Seconds small_all_reduce_time(Bytes bytes, const Group& group, const Performance& performance);

// Return the time of an all-to-all and of a send within a node.
Seconds all_to_all_time(Bytes bytes, std::int64_t ranks, const Performance& performance);
Seconds send_receive_time(Bytes bytes, const Performance& performance);

bool within_fit(Bytes bytes, const Group& group, const CollectiveRates& rates);

// Returns the exposed time of a collective beside a GEMM, which is the time beyond the GEMM's own. The
// collective takes multiprocessors and memory bandwidth from the GEMM. Together they take max(collective,
// product + overlap_loss * collective).
Seconds exposed_beside(Seconds product, Seconds collective, const CollectiveRates& rates);

// Returns how much longer a pass takes beside an exchange between experts, as a fraction of the exchange's
// time. Kernels of DeepEP and HybridEP hold multiprocessors that the pass then lacks; their memory bandwidth is
// neglected. For kernels of NCCL it is overlap_loss.
double exchange_loss(Dispatcher dispatcher, const Performance& performance);

// Returns the time that a transfer of one microbatch blocks each pipeline rank: entry r for sends from rank r
// to rank r + 1 (mod p), or for receiving that rank's gradient. Empty when p = 1. Each tensor-parallel rank
// sends 1/t and the receivers gather [Megatron-LM, --scatter-gather-tensors-in-pipeline]. Transfers block
// unless the stack overlaps those between virtual stages. Expects overlapped transfers to be shorter than the
// passes beside them.
std::vector<Seconds> send_times(const Transformer& model, const Strategy& strategy, const Workload& workload,
                                std::int64_t devices_per_node, const Performance& performance,
                                const Software& software);

}  // namespace headroom

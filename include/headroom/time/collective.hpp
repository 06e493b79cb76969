// Time of collectives and of point-to-point transfers, by kind, bytes and where the ranks are.
//
// In a node, over r ranks; phases = 2 for an all-reduce, else 1; steps = phases (r - 1); wire = steps/r bytes:
//   low latency   launch + steps * step + (wire + shard * ring/local) / low-latency bandwidth
//   ring          launch + steps * step + wire / ring bandwidth + shard / local bandwidth        the faster runs
// Between nodes the ring goes through the adapters:
//   ring launch + steps * ring step + phases * (nodes - 1) * network step + wire / bandwidth of the ring's share
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// How the ranks of a group lie over the nodes. Ranks are numbered tensor parallel fastest, then data, then pipeline.
struct Group {
  std::int64_t ranks = 1;
  std::int64_t ranks_in_node = 1;   // of the same group
  std::int64_t rings_per_node = 1;  // groups like it that leave a node at the same time
  friend bool operator==(const Group&, const Group&) = default;
};

Group tensor_parallel_group(const Strategy& strategy, std::int64_t devices_per_node);
Group data_parallel_group(const Strategy& strategy, std::int64_t devices_per_node);
// The first and the last pipeline rank, which hold the same word embedding.
Group tied_embedding_group(const Strategy& strategy, std::int64_t devices_per_node);

// `bytes` are those of the whole tensor: an all-gather's result, a reduce-scatter's input. Nothing for one rank.
Seconds collective_time(CollectiveKind kind, Bytes bytes, const Group& group, const Performance& performance);

bool within_fit(Bytes bytes, const Group& group, const CollectiveRates& rates);

// A matrix product with a collective beside it, which takes multiprocessors and memory bandwidth from it:
// max(collective, product + overlap_loss * collective). Seconds beyond the product itself.
Seconds exposed_beside(Seconds product, Seconds collective, const CollectiveRates& rates);

// How long a transfer of one microbatch keeps pipeline rank r from going on, where it sends to rank r + 1 (mod p) or
// receives that rank's gradient: entry r. Transfers are blocking; each tensor-parallel rank sends 1/t and the
// receivers gather [Megatron-LM, --scatter-gather-tensors-in-pipeline]. Empty when p = 1.
std::vector<Seconds> send_times(const Transformer& model, const Strategy& strategy, const Workload& workload,
                                std::int64_t devices_per_node, const Performance& performance,
                                const Software& software);

}  // namespace headroom

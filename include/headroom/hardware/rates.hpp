// How fast a device and its links really are: the constants of the time model, each with origin and source, grouped
// by what they mean. time/ holds the equations that they enter; calibration produces them.
#pragma once

#include <optional>

#include "headroom/core/units.hpp"
#include "headroom/hardware/sourced.hpp"

namespace headroom {

// The sizes that rates were fitted on. Beyond them a prediction is an extrapolation, and says so.
struct FittedRange {
  double least = 0;
  double most = 0;
  friend bool operator==(const FittedRange&, const FittedRange&) = default;
};

constexpr bool holds(const FittedRange& range, double size) {
  return range.least <= size && size <= range.most;
}

// Measured over predicted, of samples that the rates were not fitted to: 80% of them lie from `least` to `most`. Nothing
// where no samples were held out.
using HeldOutRatios = std::optional<FittedRange>;

// Any kernel.
struct KernelRates {
  Sourced<Seconds> launch;    // and drain
  Sourced<Seconds> shortest;  // kernel, with the gap before the next
  friend bool operator==(const KernelRates&, const KernelRates&) = default;
};

// Matrix products on the tensor cores (time/gemm.hpp).
struct MatrixProductRates {
  Sourced<Seconds> wave_fill;  // of a wave: first loads, filling the pipeline over k
  Sourced<BytesPerSecond>
      result_bandwidth;       // of all multiprocessors storing their tiles, which nothing hides
  Sourced<double> tile_feed;  // elements: a tile x by y takes 1 + tile_feed (1/x + 1/y) times its math
  Sourced<FlopsPerSecond> tile_peak;  // full waves of 256 x 128 tiles, at the clock of a burst
  Sourced<FlopsPerSecond> power_cap;  // the whole device under its power limit, at the clock of a burst
  Sourced<BytesPerSecond> memory_bandwidth;  // the memory side of the roofline of a product
  Sourced<BytesPerSecond> split_bandwidth;   // partial sums of a product split along its inner extent
  Sourced<double> sustained;                 // clock of a training step over the clock of a burst
  FittedRange fitted_sides;                  // rows and columns of the result
  FittedRange fitted_inner;
  HeldOutRatios held_out_ratios;
  friend bool operator==(const MatrixProductRates&, const MatrixProductRates&) = default;
};

// Flash attention: shares of the device's half_peak, by the FLOPs of the causal half.
struct FlashRates {
  Sourced<double> forward;
  Sourced<double> backward;
  friend bool operator==(const FlashRates&, const FlashRates&) = default;
};

// Kernels that only move memory: normalization, softmax, dropout, activation, copies.
struct StreamingRates {
  Sourced<double> bandwidth_share;  // of the device's memory bandwidth
  HeldOutRatios held_out_ratios;
  friend bool operator==(const StreamingRates&, const StreamingRates&) = default;
};

// Collectives between devices of a node, in two protocols of which the faster runs (time/collective.hpp).
struct CollectiveRates {
  Sourced<Seconds> low_latency_launch;
  Sourced<Seconds> low_latency_step;
  Sourced<BytesPerSecond> low_latency_bandwidth;
  Sourced<Seconds> ring_launch;
  Sourced<Seconds> ring_step;
  Sourced<BytesPerSecond> ring_bandwidth;   // on the wire
  Sourced<BytesPerSecond> local_bandwidth;  // the copy of a rank's own shard
  Sourced<double> overlap_loss;  // share of a product's throughput that a collective beside it takes
  FittedRange fitted_ranks;
  FittedRange fitted_bytes;
  HeldOutRatios held_out_ratios;
  friend bool operator==(const CollectiveRates&, const CollectiveRates&) = default;
};

// Between nodes.
struct NetworkRates {
  Sourced<double> link_share;             // of an adapter's bandwidth, one stream or one ring alone
  Sourced<double> ring_share;             // where several rings share a node's adapters
  Sourced<Seconds> step;                  // latency of a ring step from node to node
  Sourced<Seconds> send_synchronization;  // a blocking point-to-point transfer stalls the device this long
  friend bool operator==(const NetworkRates&, const NetworkRates&) = default;
};

// The process that launches the kernels.
struct HostRates {
  Sourced<Seconds> operation;           // host time of one operation in an eager framework
  Sourced<Seconds> blocking_operation;  // on top of it, where every launch waits for its kernel
  Sourced<double> balance;              // order of the smooth maximum of device and host time
  friend bool operator==(const HostRates&, const HostRates&) = default;
};

struct Rates {
  KernelRates kernels;
  MatrixProductRates products;
  FlashRates flash_attention;
  StreamingRates streaming;
  CollectiveRates collectives;
  NetworkRates network;
  HostRates host;
  friend bool operator==(const Rates&, const Rates&) = default;
};

// Calls visit(group, name, value) for every Sourced value of the rates, in order.
template <class R, class Visit>
void visit_rates(R& rates, Visit visit) {
  visit("kernels", "launch", rates.kernels.launch);
  visit("kernels", "shortest", rates.kernels.shortest);
  visit("products", "wave_fill", rates.products.wave_fill);
  visit("products", "result_bandwidth", rates.products.result_bandwidth);
  visit("products", "tile_feed", rates.products.tile_feed);
  visit("products", "tile_peak", rates.products.tile_peak);
  visit("products", "power_cap", rates.products.power_cap);
  visit("products", "memory_bandwidth", rates.products.memory_bandwidth);
  visit("products", "split_bandwidth", rates.products.split_bandwidth);
  visit("products", "sustained", rates.products.sustained);
  visit("flash_attention", "forward", rates.flash_attention.forward);
  visit("flash_attention", "backward", rates.flash_attention.backward);
  visit("streaming", "bandwidth_share", rates.streaming.bandwidth_share);
  visit("collectives", "low_latency_launch", rates.collectives.low_latency_launch);
  visit("collectives", "low_latency_step", rates.collectives.low_latency_step);
  visit("collectives", "low_latency_bandwidth", rates.collectives.low_latency_bandwidth);
  visit("collectives", "ring_launch", rates.collectives.ring_launch);
  visit("collectives", "ring_step", rates.collectives.ring_step);
  visit("collectives", "ring_bandwidth", rates.collectives.ring_bandwidth);
  visit("collectives", "local_bandwidth", rates.collectives.local_bandwidth);
  visit("collectives", "overlap_loss", rates.collectives.overlap_loss);
  visit("network", "link_share", rates.network.link_share);
  visit("network", "ring_share", rates.network.ring_share);
  visit("network", "step", rates.network.step);
  visit("network", "send_synchronization", rates.network.send_synchronization);
  visit("host", "operation", rates.host.operation);
  visit("host", "blocking_operation", rates.host.blocking_operation);
  visit("host", "balance", rates.host.balance);
}

}  // namespace headroom

// How fast a device and its links really are: the constants of the time model, each with origin and source, grouped
// by what they mean. time/ holds the equations that they enter; calibration produces them.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "headroom/core/dtype.hpp"
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

// Whether no product of the device was measured, so that the rates are those of another one, scaled (hardware/scaled_rates.hpp).
// A single rate may be assumed because samples do not tell it.
inline bool measured_nowhere(const MatrixProductRates& rates) {
  return rates.tile_peak.origin == Origin::assumed && rates.power_cap.origin == Origin::assumed &&
         rates.memory_bandwidth.origin == Origin::assumed;
}

// Turning a factor of 16 bits into fewer, ahead of a product: every kernel of it.
struct QuantizationRates {
  Sourced<Seconds> launch;            // of all its kernels together
  Sourced<BytesPerSecond> bandwidth;  // of what it reads and writes (time/gemm.hpp)
  friend bool operator==(const QuantizationRates&, const QuantizationRates&) = default;
};

// Products of a rank's experts, all of them in one kernel (time/gemm.hpp), and what stands around them (time/expert_block.hpp).
struct GroupedProductRates {
  Sourced<Seconds> launch;  // of all kernels of a block of experts together, and drain
  Sourced<Seconds> expert;  // of one expert in one product: its tiles are found, its matrices described
  Sourced<FlopsPerSecond> tile_peak;  // tiles on all multiprocessors, at the clock of a burst
  Sourced<BytesPerSecond>
      result_bandwidth;  // of all multiprocessors storing their tiles, which nothing hides
  Sourced<BytesPerSecond> memory_bandwidth;  // the memory side of the roofline of a product
  Sourced<BytesPerSecond> row_bandwidth;     // of the kernels that permute, activate and sum rows
  FittedRange fitted_rows;                   // of an expert
  HeldOutRatios held_out_ratios;
  friend bool operator==(const GroupedProductRates&, const GroupedProductRates&) = default;
};

// Products whose factors have fewer than 16 bits. Their tiles, power and memory are rates of their own; what
// `products` says of launches and sizes holds for them alike.
struct NarrowProductRates {
  MatrixProductRates products;
  QuantizationRates quantization;
  std::optional<GroupedProductRates> grouped;  // of experts
  friend bool operator==(const NarrowProductRates&, const NarrowProductRates&) = default;
};

// The types of fewer than 16 bits that rates can be given for, each with the group that its rates have in a system file.
struct NarrowType {
  Dtype dtype;
  std::string_view products;
  std::string_view quantization;
  std::string_view grouped;
};
inline constexpr std::array<NarrowType, 4> narrow_types{{
    {Dtype::fp8, "products_by_dtype.fp8", "products_by_dtype.fp8.quantization",
     "products_by_dtype.fp8.grouped_products"},
    {Dtype::fp8_blockwise, "products_by_dtype.fp8_blockwise", "products_by_dtype.fp8_blockwise.quantization",
     "products_by_dtype.fp8_blockwise.grouped_products"},
    {Dtype::mxfp8, "products_by_dtype.mxfp8", "products_by_dtype.mxfp8.quantization",
     "products_by_dtype.mxfp8.grouped_products"},
    {Dtype::nvfp4, "products_by_dtype.nvfp4", "products_by_dtype.nvfp4.quantization",
     "products_by_dtype.nvfp4.grouped_products"},
}};

// Where a type stands among narrow_types; nothing for others.
constexpr std::optional<std::size_t> narrow_index(Dtype dtype) {
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    if (narrow_types[i].dtype == dtype) return i;
  }
  return std::nullopt;
}

// Flash attention (time/attention.hpp).
struct FlashRates {
  Sourced<Seconds> launch;            // of its kernels, and drain
  Sourced<double> tile_queries;       // that a multiprocessor takes at a time
  Sourced<Seconds> tile_fill;         // of a tile of queries: first loads, filling the pipeline, the result
  Sourced<FlopsPerSecond> tile_peak;  // products of all multiprocessors, at the clock of a burst
  Sourced<double> softmax_width;      // elements of head size whose products take as long as an exponential
  Sourced<double> overlap_order;      // of the smooth maximum of products and exponentials: 1 adds them up
  Sourced<double> last_tile;          // of the longest tile, that other multiprocessors wait for at the end
  Sourced<FlopsPerSecond> power_cap;  // the whole device under its power limit, at the clock of a burst
  Sourced<double> fp8_speed;          // of products of FP8, over those of 16 bits
  Sourced<double> backward;           // of the products of the backward pass, likewise
  Sourced<double> sustained;          // clock of a training step over the clock of a burst
  Sourced<double> pytorch_speed;  // of the kernels that PyTorch picks by itself, over those that were fitted
  FittedRange fitted_queries;     // of a head
  FittedRange fitted_head_sizes;  // of queries and keys
  HeldOutRatios held_out_ratios;
  friend bool operator==(const FlashRates&, const FlashRates&) = default;
};

// Whether what a step of training takes from them is assumed, not fitted.
inline bool any_assumed(const FlashRates& rates) {
  return rates.tile_peak.origin == Origin::assumed || rates.backward.origin == Origin::assumed ||
         rates.sustained.origin == Origin::assumed;
}

// Kernels that only move memory: normalization, softmax, dropout, activation, copies.
struct StreamingRates {
  Sourced<double> bandwidth_share;  // of the device's memory bandwidth
  HeldOutRatios held_out_ratios;
  friend bool operator==(const StreamingRates&, const StreamingRates&) = default;
};

// All-reduces that the switches between devices sum up: NVLS of NCCL, on NVSwitches of the third generation and later.
struct NvlsRates {
  Sourced<Seconds> launch;
  Sourced<BytesPerSecond> switch_bandwidth;  // of a device to its switches, on the wire
  friend bool operator==(const NvlsRates&, const NvlsRates&) = default;
};

// One of the two kernels by which DeepEP sends a token once to each rank of its experts, as a group of ranks in a node runs it.
struct TokenKernelRates {
  Sourced<Seconds> launch;
  Sourced<Seconds> token;                     // of those that a rank has
  Sourced<BytesPerSecond> receive_bandwidth;  // of a dispatch, its own part with it; a combine sends as much
  friend bool operator==(const TokenKernelRates&, const TokenKernelRates&) = default;
};
struct DeepEpRates {
  TokenKernelRates dispatch;
  TokenKernelRates combine;
  friend bool operator==(const DeepEpRates&, const DeepEpRates&) = default;
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
  Sourced<double> all_to_all;               // bandwidth of an all-to-all over that of a ring
  Sourced<double> overlap_loss;       // share of a product's throughput that a collective beside it takes
  std::optional<NvlsRates> nvls;      // nothing where switches do not sum
  std::optional<DeepEpRates> deepep;  // nothing where it was not measured
  FittedRange fitted_ranks;
  FittedRange fitted_bytes;
  HeldOutRatios held_out_ratios;
  friend bool operator==(const CollectiveRates&, const CollectiveRates&) = default;
};

// Between nodes.
struct NetworkRates {
  Sourced<double> nic_efficiency;         // bus bandwidth over line rate, of a ring that shares no NIC
  Sourced<double> shared_nic_efficiency;  // the same of all rings together that share a node's NICs
  Sourced<Seconds> step;                  // latency of a ring step from node to node
  Sourced<Seconds> send_synchronization;  // a blocking point-to-point transfer stalls the device this long
  friend bool operator==(const NetworkRates&, const NetworkRates&) = default;
};

// The process that launches the kernels.
struct HostRates {
  Sourced<Seconds> operation;  // host time of one operation of a stack: a module, and its autograd
  Sourced<Seconds> launch;  // of one kernel more that an operation launches, by an operator of the framework
  Sourced<Seconds> blocking_operation;  // on top of it, where every launch waits for its kernel
  Sourced<double> balance;              // order of the smooth maximum of device and host time
  friend bool operator==(const HostRates&, const HostRates&) = default;
};

struct Rates {
  KernelRates kernels;
  MatrixProductRates products;
  std::optional<GroupedProductRates> grouped_products;  // of 16 bits
  FlashRates flash_attention;
  StreamingRates streaming;
  CollectiveRates collectives;
  NetworkRates network;
  HostRates host;
  std::array<std::optional<NarrowProductRates>, narrow_types.size()>
      products_by_dtype;  // as narrow_types has them
  friend bool operator==(const Rates&, const Rates&) = default;
};

// The rates of a type's products, where it has its own; null where they are those of 16 bits, scaled by peak.
constexpr const NarrowProductRates* narrow_rates(const Rates& rates, Dtype dtype) {
  const auto index = narrow_index(dtype);
  return index && rates.products_by_dtype[*index] ? &*rates.products_by_dtype[*index] : nullptr;
}

// The rates that products of a type are priced by.
constexpr const MatrixProductRates& product_rates(const Rates& rates, Dtype dtype) {
  const NarrowProductRates* narrow = narrow_rates(rates, dtype);
  return narrow == nullptr ? rates.products : narrow->products;
}

// Those of grouped products of a type; null where they were not measured.
constexpr const GroupedProductRates* grouped_rates(const Rates& rates, Dtype dtype) {
  const NarrowProductRates* narrow = narrow_rates(rates, dtype);
  if (narrow != nullptr) return narrow->grouped ? &*narrow->grouped : nullptr;
  return !narrow_index(dtype) && rates.grouped_products ? &*rates.grouped_products : nullptr;
}

// Calls visit(group, name, value) for every Sourced value of a set of rates, in order.
template <class R, class Visit>
void visit_products(std::string_view group, R& rates, Visit visit) {
  visit(group, "wave_fill", rates.wave_fill);
  visit(group, "result_bandwidth", rates.result_bandwidth);
  visit(group, "tile_feed", rates.tile_feed);
  visit(group, "tile_peak", rates.tile_peak);
  visit(group, "power_cap", rates.power_cap);
  visit(group, "memory_bandwidth", rates.memory_bandwidth);
  visit(group, "split_bandwidth", rates.split_bandwidth);
  visit(group, "sustained", rates.sustained);
}
template <class R, class Visit>
void visit_quantization(std::string_view group, R& rates, Visit visit) {
  visit(group, "launch", rates.launch);
  visit(group, "bandwidth", rates.bandwidth);
}

template <class R, class Visit>
void visit_grouped(std::string_view group, R& rates, Visit visit) {
  visit(group, "launch", rates.launch);
  visit(group, "expert", rates.expert);
  visit(group, "tile_peak", rates.tile_peak);
  visit(group, "result_bandwidth", rates.result_bandwidth);
  visit(group, "memory_bandwidth", rates.memory_bandwidth);
  visit(group, "row_bandwidth", rates.row_bandwidth);
}

template <class R, class Visit>
void visit_nvls(std::string_view group, R& rates, Visit visit) {
  visit(group, "launch", rates.launch);
  visit(group, "switch_bandwidth", rates.switch_bandwidth);
}

template <class R, class Visit>
void visit_token_kernel(std::string_view group, R& rates, Visit visit) {
  visit(group, "launch", rates.launch);
  visit(group, "token", rates.token);
  visit(group, "receive_bandwidth", rates.receive_bandwidth);
}
template <class R, class Visit>
void visit_deepep(R& rates, Visit visit) {
  visit_token_kernel("collectives.deepep.dispatch", rates.dispatch, visit);
  visit_token_kernel("collectives.deepep.combine", rates.combine, visit);
}

// Calls visit(group, name, value) for every Sourced value of the rates, in order.
template <class R, class Visit>
void visit_rates(R& rates, Visit visit) {
  visit("kernels", "launch", rates.kernels.launch);
  visit("kernels", "shortest", rates.kernels.shortest);
  visit_products("products", rates.products, visit);
  if (rates.grouped_products) visit_grouped("grouped_products", *rates.grouped_products, visit);
  visit("flash_attention", "launch", rates.flash_attention.launch);
  visit("flash_attention", "tile_queries", rates.flash_attention.tile_queries);
  visit("flash_attention", "tile_fill", rates.flash_attention.tile_fill);
  visit("flash_attention", "tile_peak", rates.flash_attention.tile_peak);
  visit("flash_attention", "softmax_width", rates.flash_attention.softmax_width);
  visit("flash_attention", "overlap_order", rates.flash_attention.overlap_order);
  visit("flash_attention", "last_tile", rates.flash_attention.last_tile);
  visit("flash_attention", "power_cap", rates.flash_attention.power_cap);
  visit("flash_attention", "fp8_speed", rates.flash_attention.fp8_speed);
  visit("flash_attention", "backward", rates.flash_attention.backward);
  visit("flash_attention", "sustained", rates.flash_attention.sustained);
  visit("flash_attention", "pytorch_speed", rates.flash_attention.pytorch_speed);
  visit("streaming", "bandwidth_share", rates.streaming.bandwidth_share);
  visit("collectives", "low_latency_launch", rates.collectives.low_latency_launch);
  visit("collectives", "low_latency_step", rates.collectives.low_latency_step);
  visit("collectives", "low_latency_bandwidth", rates.collectives.low_latency_bandwidth);
  visit("collectives", "ring_launch", rates.collectives.ring_launch);
  visit("collectives", "ring_step", rates.collectives.ring_step);
  visit("collectives", "ring_bandwidth", rates.collectives.ring_bandwidth);
  visit("collectives", "local_bandwidth", rates.collectives.local_bandwidth);
  visit("collectives", "all_to_all", rates.collectives.all_to_all);
  visit("collectives", "overlap_loss", rates.collectives.overlap_loss);
  if (rates.collectives.nvls) visit_nvls("collectives.nvls", *rates.collectives.nvls, visit);
  if (rates.collectives.deepep) visit_deepep(*rates.collectives.deepep, visit);
  visit("network", "nic_efficiency", rates.network.nic_efficiency);
  visit("network", "shared_nic_efficiency", rates.network.shared_nic_efficiency);
  visit("network", "step", rates.network.step);
  visit("network", "send_synchronization", rates.network.send_synchronization);
  visit("host", "operation", rates.host.operation);
  visit("host", "launch", rates.host.launch);
  visit("host", "blocking_operation", rates.host.blocking_operation);
  visit("host", "balance", rates.host.balance);
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    if (!rates.products_by_dtype[i]) continue;
    visit_products(narrow_types[i].products, rates.products_by_dtype[i]->products, visit);
    visit_quantization(narrow_types[i].quantization, rates.products_by_dtype[i]->quantization, visit);
    if (auto& grouped = rates.products_by_dtype[i]->grouped)
      visit_grouped(narrow_types[i].grouped, *grouped, visit);
  }
}

}  // namespace headroom

// Measured rates of a device and its links: the constants of the time model, each with its origin and source.
// The equations that use them are in time/; calibration produces them.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "headroom/core/dtype.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/sourced.hpp"

namespace headroom {

// Range of sizes that rates were fitted on. A prediction outside it is an extrapolation and is reported as
// one.
struct FittedRange {
  double least = 0;
  double most = 0;
  friend bool operator==(const FittedRange&, const FittedRange&) = default;
};

constexpr bool holds(const FittedRange& range, double size) {
  return range.least <= size && size <= range.most;
}

// Ratios of measured to predicted time on samples that the rates were not fitted to. 80% of the ratios lie
// from `least` to `most`. Absent if no samples were held out.
using HeldOutRatios = std::optional<FittedRange>;

// Rates of any kernel.
struct KernelRates {
  Sourced<Seconds> launch;    // launch and drain of a kernel
  Sourced<Seconds> shortest;  // shortest kernel, with the gap before the next one
  friend bool operator==(const KernelRates&, const KernelRates&) = default;
};

// Rates of GEMMs on the tensor cores (time/gemm.hpp).
struct MatrixProductRates {
  Sourced<Seconds> wave_fill;  // per wave: first loads, filling the pipeline over k
  // All multiprocessors storing their tiles, which nothing hides.
  Sourced<BytesPerSecond> result_bandwidth;
  Sourced<double> tile_feed;  // in elements: a tile of x by y takes 1 + tile_feed (1/x + 1/y) times its math
  Sourced<FlopsPerSecond> tile_peak;         // full waves of 256 x 128 tiles, at the burst clock
  Sourced<FlopsPerSecond> power_cap;         // whole device under its power limit, at the burst clock
  Sourced<BytesPerSecond> memory_bandwidth;  // of GEMMs limited by memory
  Sourced<BytesPerSecond> split_bandwidth;   // partial sums of a GEMM that is split along k
  Sourced<double> sustained;                 // clock of a training step over the burst clock
  FittedRange fitted_sides;                  // m and n, the rows and columns of the result
  FittedRange fitted_inner;
  HeldOutRatios held_out_ratios;
  friend bool operator==(const MatrixProductRates&, const MatrixProductRates&) = default;
};

// Returns whether no GEMM of the device was measured, so that its rates are another device's, scaled
// (hardware/scaled_rates.hpp). A single assumed rate is no proof: samples may not determine it.
inline bool measured_nowhere(const MatrixProductRates& rates) {
  return rates.tile_peak.origin == Origin::assumed && rates.power_cap.origin == Origin::assumed &&
         rates.memory_bandwidth.origin == Origin::assumed;
}

// Rates of quantization: all kernels that cast a 16-bit operand to fewer bits ahead of a GEMM.
struct QuantizationRates {
  Sourced<Seconds> launch;            // all kernels of a cast together
  Sourced<BytesPerSecond> bandwidth;  // of the bytes read and written (time/gemm.hpp)
  friend bool operator==(const QuantizationRates&, const QuantizationRates&) = default;
};

// Rates of grouped GEMMs, which run all experts of a rank in one kernel (time/gemm.hpp), and of the kernels
// around them (time/expert_block.hpp).
struct GroupedProductRates {
  Sourced<Seconds> launch;            // launch and drain of all kernels of an expert block
  Sourced<Seconds> expert;            // per expert and GEMM: finding its tiles, describing its matrices
  Sourced<FlopsPerSecond> tile_peak;  // tiles on all multiprocessors, at the burst clock
  Sourced<BytesPerSecond> result_bandwidth;  // all multiprocessors storing tiles, never hidden
  Sourced<BytesPerSecond> memory_bandwidth;  // of GEMMs limited by memory
  Sourced<BytesPerSecond> row_bandwidth;     // of the kernels that permute, activate and sum tokens
  FittedRange fitted_rows;                   // tokens of an expert
  HeldOutRatios held_out_ratios;
  friend bool operator==(const GroupedProductRates&, const GroupedProductRates&) = default;
};

// Rates of GEMMs whose operands have fewer than 16 bits. Tiles, power and memory have rates of their own.
// The launches and sizes in `products` apply here too.
struct NarrowProductRates {
  MatrixProductRates products;
  QuantizationRates quantization;
  std::optional<GroupedProductRates> grouped;  // of expert GEMMs
  friend bool operator==(const NarrowProductRates&, const NarrowProductRates&) = default;
};

// Dtypes of fewer than 16 bits that can have rates, each with the groups of its rates in a system file.
struct NarrowType {
  Dtype dtype;
  std::string_view products;
  std::string_view quantization;
  std::string_view grouped;
  std::string_view quantization_alone;
};
inline constexpr std::array<NarrowType, 4> narrow_types{{
    {Dtype::fp8, "products_by_dtype.fp8", "products_by_dtype.fp8.quantization",
     "products_by_dtype.fp8.grouped_products", "quantization_by_dtype.fp8"},
    {Dtype::fp8_blockwise, "products_by_dtype.fp8_blockwise", "products_by_dtype.fp8_blockwise.quantization",
     "products_by_dtype.fp8_blockwise.grouped_products", "quantization_by_dtype.fp8_blockwise"},
    {Dtype::mxfp8, "products_by_dtype.mxfp8", "products_by_dtype.mxfp8.quantization",
     "products_by_dtype.mxfp8.grouped_products", "quantization_by_dtype.mxfp8"},
    {Dtype::nvfp4, "products_by_dtype.nvfp4", "products_by_dtype.nvfp4.quantization",
     "products_by_dtype.nvfp4.grouped_products", "quantization_by_dtype.nvfp4"},
}};

// Returns the index of a dtype in narrow_types; nothing for other dtypes.
constexpr std::optional<std::size_t> narrow_index(Dtype dtype) {
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    if (narrow_types[i].dtype == dtype) return i;
  }
  return std::nullopt;
}

// Rates of flash attention (time/attention.hpp).
struct FlashRates {
  Sourced<Seconds> launch;            // launch and drain of its kernels
  Sourced<double> tile_queries;       // queries in a tile, which one multiprocessor computes at a time
  Sourced<Seconds> tile_fill;         // per tile: first loads, filling the pipeline, storing the result
  Sourced<FlopsPerSecond> tile_peak;  // GEMMs on all multiprocessors, at the burst clock
  Sourced<double> softmax_width;      // elements of head size that take as long as one exponential
  Sourced<double> overlap_order;      // order of the smooth maximum of GEMMs and exponentials; 1 adds them up
  Sourced<double> last_tile;  // share of the longest tile that other multiprocessors wait for at the end
  Sourced<FlopsPerSecond> power_cap;  // whole device under its power limit, at the burst clock
  Sourced<double> fp8_speed;          // speed of FP8 GEMMs over 16-bit GEMMs
  Sourced<double> backward;           // speed of the backward pass's GEMMs over the forward pass's
  Sourced<double> sustained;          // clock of a training step over the burst clock
  Sourced<double> pytorch_speed;      // speed of the kernels that PyTorch picks over the fitted kernels
  FittedRange fitted_queries;         // queries of a head
  FittedRange fitted_head_sizes;      // head sizes of queries and keys
  HeldOutRatios held_out_ratios;
  friend bool operator==(const FlashRates&, const FlashRates&) = default;
};

// Returns whether any rate that a training step takes from `rates` is assumed rather than fitted.
inline bool any_assumed(const FlashRates& rates) {
  return rates.tile_peak.origin == Origin::assumed || rates.backward.origin == Origin::assumed ||
         rates.sustained.origin == Origin::assumed;
}

// Rates of memory-bound kernels: normalization, softmax, dropout, activation, copies.
struct StreamingRates {
  Sourced<double> bandwidth_share;  // share of the device's memory bandwidth
  HeldOutRatios held_out_ratios;
  friend bool operator==(const StreamingRates&, const StreamingRates&) = default;
};

// Rates of all-reduces that the switches between devices sum: NCCL's NVLS, on NVSwitches of the third
// generation and later.
struct NvlsRates {
  Sourced<Seconds> launch;
  Sourced<BytesPerSecond> switch_bandwidth;  // from a device to its switches, on the wire
  friend bool operator==(const NvlsRates&, const NvlsRates&) = default;
};

// Rates of one of DeepEP's two kernels in a node, dispatch or combine. DeepEP sends a token once to each rank
// of its experts.
struct TokenKernelRates {
  Sourced<Seconds> launch;
  Sourced<Seconds> token;  // per token that a rank has
  // Receive bandwidth of a dispatch, own share included; send bandwidth of a combine.
  Sourced<BytesPerSecond> receive_bandwidth;
  friend bool operator==(const TokenKernelRates&, const TokenKernelRates&) = default;
};
struct DeepEpRates {
  TokenKernelRates dispatch;
  TokenKernelRates combine;
  friend bool operator==(const DeepEpRates&, const DeepEpRates&) = default;
};

// Bandwidths of HybridEP's kernels: bytes that a rank receives from the other ranks of its node in a dispatch,
// or sends to them in a combine, over the time. Between nodes, they include what the node forwards.
struct HybridEpRates {
  Sourced<BytesPerSecond> dispatch_bandwidth;
  Sourced<BytesPerSecond> combine_bandwidth;
  friend bool operator==(const HybridEpRates&, const HybridEpRates&) = default;
};

// Rates of collectives between devices of a node. They run in the faster of two protocols
// (time/collective.hpp).
struct CollectiveRates {
  Sourced<Seconds> low_latency_launch;
  Sourced<Seconds> low_latency_step;
  Sourced<BytesPerSecond> low_latency_bandwidth;
  Sourced<Seconds> ring_launch;
  Sourced<Seconds> ring_step;
  Sourced<BytesPerSecond> ring_bandwidth;   // on the wire
  Sourced<BytesPerSecond> local_bandwidth;  // copy of a rank's own shard
  Sourced<double> all_to_all;               // bandwidth of an all-to-all over that of a ring
  Sourced<double> overlap_loss;       // share of a GEMM's throughput that an overlapped collective takes
  std::optional<NvlsRates> nvls;      // absent if switches do not sum
  std::optional<DeepEpRates> deepep;  // absent if DeepEP was not measured
  // Absent if HybridEP was not measured: within a node, and over nodes.
  std::optional<HybridEpRates> hybridep;
  std::optional<HybridEpRates> hybridep_over_nodes;
  FittedRange fitted_ranks;
  FittedRange fitted_bytes;
  HeldOutRatios held_out_ratios;
  friend bool operator==(const CollectiveRates&, const CollectiveRates&) = default;
};

// Rates of collectives between nodes.
struct NetworkRates {
  Sourced<double> nic_efficiency;  // bus bandwidth over line rate, of a ring that shares no NIC
  // Bus bandwidth over line rate, of all rings that share a node's NICs.
  Sourced<double> shared_nic_efficiency;
  Sourced<Seconds> step;                  // latency of a ring step from node to node
  Sourced<Seconds> send_synchronization;  // a blocking point-to-point transfer stalls the device this long
  friend bool operator==(const NetworkRates&, const NetworkRates&) = default;
};

// Rates of the process that launches the kernels.
struct HostRates {
  Sourced<Seconds> operation;  // host time of one operation of a stack: a module and its autograd
  // Host time of each further kernel of an operation, launched by a framework operator.
  Sourced<Seconds> launch;
  // Extra host time of an operation when every launch waits for its kernel.
  Sourced<Seconds> blocking_operation;
  Sourced<double> balance;  // order of the smooth maximum of device and host time
  friend bool operator==(const HostRates&, const HostRates&) = default;
};

struct Rates {
  KernelRates kernels;
  MatrixProductRates products;
  std::optional<GroupedProductRates> grouped_products;  // of 16-bit dtypes
  FlashRates flash_attention;
  StreamingRates streaming;
  CollectiveRates collectives;
  NetworkRates network;
  HostRates host;
  // In the order of narrow_types.
  std::array<std::optional<NarrowProductRates>, narrow_types.size()> products_by_dtype;
  // Of dtypes whose casts were measured but not their GEMMs.
  std::array<std::optional<QuantizationRates>, narrow_types.size()> quantization_by_dtype;
  friend bool operator==(const Rates&, const Rates&) = default;
};

// Returns the rates of GEMMs in a dtype; null if the dtype has none of its own and takes the 16-bit rates,
// scaled by peak.
constexpr const NarrowProductRates* narrow_rates(const Rates& rates, Dtype dtype) {
  const auto index = narrow_index(dtype);
  return index && rates.products_by_dtype[*index] ? &*rates.products_by_dtype[*index] : nullptr;
}

// Returns the rates of casts to a dtype; null if they were not measured.
constexpr const QuantizationRates* quantization_rates(const Rates& rates, Dtype dtype) {
  if (const NarrowProductRates* const narrow = narrow_rates(rates, dtype)) return &narrow->quantization;
  const auto index = narrow_index(dtype);
  return index && rates.quantization_by_dtype[*index] ? &*rates.quantization_by_dtype[*index] : nullptr;
}

// Returns the rates that price GEMMs in a dtype.
constexpr const MatrixProductRates& product_rates(const Rates& rates, Dtype dtype) {
  const NarrowProductRates* narrow = narrow_rates(rates, dtype);
  return narrow == nullptr ? rates.products : narrow->products;
}

// Returns the rates of grouped GEMMs in a dtype; null if they were not measured.
constexpr const GroupedProductRates* grouped_rates(const Rates& rates, Dtype dtype) {
  const NarrowProductRates* narrow = narrow_rates(rates, dtype);
  if (narrow != nullptr) return narrow->grouped ? &*narrow->grouped : nullptr;
  return !narrow_index(dtype) && rates.grouped_products ? &*rates.grouped_products : nullptr;
}

// Calls visit(group, name, value) for every Sourced value of one group of rates, in order.
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

template <class R, class Visit>
void visit_hybridep(std::string_view group, R& rates, Visit visit) {
  visit(group, "dispatch_bandwidth", rates.dispatch_bandwidth);
  visit(group, "combine_bandwidth", rates.combine_bandwidth);
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
  if (rates.collectives.hybridep) visit_hybridep("collectives.hybridep", *rates.collectives.hybridep, visit);
  if (rates.collectives.hybridep_over_nodes)
    visit_hybridep("collectives.hybridep_over_nodes", *rates.collectives.hybridep_over_nodes, visit);
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
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    if (rates.quantization_by_dtype[i])
      visit_quantization(narrow_types[i].quantization_alone, *rates.quantization_by_dtype[i], visit);
  }
}

}  // namespace headroom

// Cost of one op of a table on one rank, for one microbatch: its GEMMs, its memory-bound kernels and the
// collectives around it, forward and backward.
#pragma once

#include "headroom/time/op_work.hpp"

namespace headroom {

// Device time by kind of work, and host time of launching it.
struct PassCost {
  Seconds gemm;       // GEMMs of linears
  Seconds attention;  // QK^T and the GEMM with V, or flash attention
  Seconds memory_bound;
  Seconds communication;          // exposed time of collectives around ops
  std::int64_t operations = 0;    // operations that the host launches
  Seconds expert_communication;   // part of `communication`: between ranks that share experts
  Seconds context_communication;  // part of `communication`: between ranks that share a sequence
  Seconds data_communication;     // part of `communication`: sharded weights and gradients; nothing hides it
  Seconds host_communication;     // part of `communication`: to and from the host; nothing hides it
  Seconds scale_communication;    // part of `communication`: scales of GEMMs (time/scales.hpp)
  Seconds host;                   // launches of operations and of kernels within their loops
  Seconds drained;                // idle time of the device after the host waited for it
  [[nodiscard]] constexpr Seconds products() const { return gemm + attention; }
  friend bool operator==(const PassCost&, const PassCost&) = default;
};

constexpr Seconds device_time(const PassCost& cost) {
  return cost.gemm + cost.attention + cost.memory_bound + cost.communication + cost.drained;
}

constexpr PassCost& operator+=(PassCost& x, const PassCost& y) {
  x.gemm += y.gemm;
  x.attention += y.attention;
  x.memory_bound += y.memory_bound;
  x.communication += y.communication;
  x.operations += y.operations;
  x.expert_communication += y.expert_communication;
  x.context_communication += y.context_communication;
  x.data_communication += y.data_communication;
  x.host_communication += y.host_communication;
  x.scale_communication += y.scale_communication;
  x.host += y.host;
  x.drained += y.drained;
  return x;
}
constexpr PassCost operator+(PassCost x, const PassCost& y) { return x += y; }

constexpr PassCost operator*(std::int64_t count, const PassCost& cost) {
  const auto times = static_cast<double>(count);
  return {times * cost.gemm,
          times * cost.attention,
          times * cost.memory_bound,
          times * cost.communication,
          count * cost.operations,
          times * cost.expert_communication,
          times * cost.context_communication,
          times * cost.data_communication,
          times * cost.host_communication,
          times * cost.scale_communication,
          times * cost.host,
          times * cost.drained};
}

// Flags of a cost that is extrapolated beyond the fitted rates, or known to be rough.
struct Extrapolations {
  bool product_size = false;       // a GEMM outside the fitted sizes
  bool message_size = false;       // a collective outside the fitted bytes
  bool group_size = false;         // a collective outside the fitted ranks
  bool unaligned_heads = false;    // head size not a multiple of 8: GEMMs cannot use tensor cores
  bool attention_size = false;     // flash attention outside the fitted sizes
  bool flash_attention = false;    // any flash attention: its rates may be assumed
  bool scan = false;               // a scan over a sequence: rates of one device stand for all
  bool grouped_products = false;   // grouped expert GEMMs, priced by their own rates
  std::uint32_t narrow_types = 0;  // dtypes of GEMMs: a bit for each index in narrow_types
  friend bool operator==(const Extrapolations&, const Extrapolations&) = default;
};

constexpr Extrapolations operator|(const Extrapolations& x, const Extrapolations& y) {
  return {x.product_size || y.product_size,
          x.message_size || y.message_size,
          x.group_size || y.group_size,
          x.unaligned_heads || y.unaligned_heads,
          x.attention_size || y.attention_size,
          x.flash_attention || y.flash_attention,
          x.scan || y.scan,
          x.grouped_products || y.grouped_products,
          x.narrow_types | y.narrow_types};
}

struct OpCost {
  PassCost forward;
  PassCost backward_data;    // work that the preceding op's backward pass waits for
  PassCost backward_weight;  // weight gradients and their accumulation
  Extrapolations beyond;
  Seconds reduction;         // part of forward communication: reduce-scatters after the op
  Seconds reduction_copies;  // part of memory-bound time: copies for reduce-scatters
  std::vector<std::pair<ValueId, double>> made;  // outputs of a linear, as fractions of all its outputs
  double kernels = 1;                            // that the host launches in the forward pass
  bool host_waits = false;                       // before the op
  friend bool operator==(const OpCost&, const OpCost&) = default;
};

OpCost op_cost(const OpWork& work, const Setting& setting);
OpCost op_cost(const OpTable& table, std::size_t op, const Collectives& inserted, const Setting& setting);

}  // namespace headroom

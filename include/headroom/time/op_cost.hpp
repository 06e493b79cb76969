// What one op of a table costs on one rank, for one microbatch: its GEMMs, its memory-bound kernels and the
// collectives around it, forward and backward.
#pragma once

#include "headroom/time/op_work.hpp"

namespace headroom {

// Device time by what takes it, and what launching it takes of the host.
struct PassCost {
  Seconds gemm;       // of linears
  Seconds attention;  // QK^T and the product with V, or flash attention
  Seconds memory_bound;
  Seconds communication;          // exposed, of collectives around ops
  std::int64_t operations = 0;    // that the host launches
  Seconds expert_communication;   // of `communication`: between ranks that share experts,
  Seconds context_communication;  // between those that share a sequence,
  Seconds data_communication;     // of weights and gradients that data-parallel ranks divide,
  Seconds host_communication;     // of what goes to the host and comes back,
  Seconds scale_communication;    // and of the scales of products (time/scales.hpp)
  Seconds host;                   // to launch its operations, and the kernels that they launch in loops
  Seconds drained;                // of the device, which has nothing to do after the host waited for it
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

// Where a cost goes beyond what its rates were fitted on, or is known to be rough.
struct Extrapolations {
  bool product_size = false;       // a matrix product outside the fitted sizes
  bool message_size = false;       // a collective outside the fitted bytes
  bool group_size = false;         // or ranks
  bool unaligned_heads = false;    // a head size that is no multiple of 8: products fall off the tensor cores
  bool attention_size = false;     // flash attention outside the fitted sizes
  bool flash_attention = false;    // flash attention at all: its rates may be assumed
  bool scan = false;               // of a Mamba mixer: rates of one device stand for all
  bool grouped_products = false;   // products of experts in one kernel, by rates of their own
  std::uint32_t narrow_types = 0;  // that products are of: a bit for each place in narrow_types
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
  PassCost backward_data;    // what the backward pass of the op before waits for
  PassCost backward_weight;  // weight gradients and their accumulation
  Extrapolations beyond;
  Seconds reduction;                             // of its forward communication: reduce-scatters behind it,
  Seconds reduction_copies;                      // and of its memory-bound kernels what they read
  std::vector<std::pair<ValueId, double>> made;  // of a linear: its outputs, as parts of all that it makes
  friend bool operator==(const OpCost&, const OpCost&) = default;
};

OpCost op_cost(const OpWork& work, const Setting& setting);
OpCost op_cost(const OpTable& table, std::size_t op, const Collectives& inserted, const Setting& setting);

}  // namespace headroom

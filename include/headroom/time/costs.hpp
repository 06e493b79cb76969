// Costs on one rank, for one microbatch, as values: of a pass, a layer, a virtual stage and a whole model,
// and times of the exchanges beside passes. op_cost.hpp, layer_cost.hpp, stage_time.hpp and
// unit_exchanges.hpp compute them.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/time/race.hpp"

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

struct LayerCost {
  PassCost forward;
  PassCost backward_data;
  PassCost backward_weight;
  PassCost recompute;   // forward work that the backward pass repeats first
  Race race;            // through the forward pass
  bool begins = false;  // comes before the layers of the model
  Extrapolations beyond;
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

// Returns the cost of the backward pass without recomputation.
constexpr PassCost backward(const LayerCost& cost) { return cost.backward_data + cost.backward_weight; }

// Cost of a virtual stage: its layers, the embedding on the first stage, the output layer on the last.
struct StageCost {
  PassCost forward;
  PassCost recompute;
  PassCost backward;       // without recomputation; input and weight gradients in one pass
  PassCost backward_data;  // the same work in two passes
  PassCost backward_weight;
  Race race;  // through the forward pass; Race{} if the host never waits in it
  friend bool operator==(const StageCost&, const StageCost&) = default;
};

// Cost of exchanging GEMM scales in a pass of a virtual stage. It does not depend on the stage's layers: the
// bytes are negligible.
struct ScaleCosts {
  PassCost forward;
  PassCost backward;
  friend bool operator==(const ScaleCosts&, const ScaleCosts&) = default;
};

// Parts of a model, each priced once: a layer of every kind and both ends, in the order of
// ModelLayers::kinds.
struct ModelCost {
  std::vector<LayerCost> kinds;
  ScaleCosts scales = {};
  friend bool operator==(const ModelCost&, const ModelCost&) = default;
};

// Times of one microbatch: collectives and transfers without overlap, and their exposed parts. Neither
// kernels nor launches hide the exposed parts.
struct ExchangeTimes {
  Seconds gather;
  Seconds forward_gather;  // of them those of the forward pass
  Seconds reduction;
  Seconds host;  // transfers with the host, both ways
  Seconds exposed_forward;
  Seconds exposed_backward;
  Seconds exposed_host_forward;  // beyond exposed collectives
  Seconds exposed_host_backward;
  friend bool operator==(const ExchangeTimes&, const ExchangeTimes&) = default;
};

inline ExchangeTimes operator+(const ExchangeTimes& x, const ExchangeTimes& y) {
  return {.gather = x.gather + y.gather,
          .forward_gather = x.forward_gather + y.forward_gather,
          .reduction = x.reduction + y.reduction,
          .host = x.host + y.host,
          .exposed_forward = x.exposed_forward + y.exposed_forward,
          .exposed_backward = x.exposed_backward + y.exposed_backward,
          .exposed_host_forward = x.exposed_host_forward + y.exposed_host_forward,
          .exposed_host_backward = x.exposed_host_backward + y.exposed_host_backward};
}

}  // namespace headroom

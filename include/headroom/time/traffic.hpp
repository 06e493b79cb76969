// Memory-bound kernels of an op and their bytes, derived from the op's row of the op table. The table also
// says what is saved and what is computed; traffic follows by rule:
//
//   forward    inputs read + outputs written
//   backward   gradients of outputs read + saved values read + gradients of inputs written
//   gradients  of a value that two ops read are added
//   bias       of a linear joins the elementwise op that reads its output, or else costs a kernel; its
//              gradient sums up the output's, unless the table states the bytes
//   views      outputs that are views into one buffer have their gradients concatenated
//
// Traffic that no rule can derive is in the table as Op::traffic, as is the traffic of unfused framework
// operators.
#pragma once

#include <vector>

#include "headroom/core/vector_constexpr.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/model/adapters.hpp"
#include "headroom/model/routing_operators.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/parameters.hpp"

namespace headroom {

struct StreamingKernel {
  std::string_view name;    // the op's name for its main kernel
  Expr bytes;               // read and written, on one rank
  int operations = 1;       // kernels that the host launches for it
  bool by_expert = false;   // `operations` for each expert of a rank
  bool of_weights = false;  // computes a weight gradient, which no backward op waits for
  // Framework operators beyond the first. Each is a kernel that moves a part of the bytes.
  int operators = 0;
};

using StreamingKernels = std::vector<StreamingKernel>;

// Choices of a training stack that change traffic, as a literal type.
struct TrafficOptions {
  NormBackward norm_backward = NormBackward::one_pass;
  GradientAccumulation accumulation = GradientAccumulation::fused;
  Dtype gradients = Dtype::fp32;
  // Full gradients of microbatches are summed. If false, each is reduced to the shards of ranks
  // [data_shards.hpp].
  bool sums_gradients = true;
};

// Returns whether the weight-gradient GEMM accumulates into the gradients itself. The fused kernel supports
// FP32 only [Apex, wgrad_gemm_accum_fp32].
constexpr bool adds_in_product(const TrafficOptions& options) {
  return options.sums_gradients && options.accumulation == GradientAccumulation::fused &&
         options.gradients == Dtype::fp32;
}

namespace detail {

constexpr Expr bytes_of(const Value& value, const Sharding& sharding) {
  return bytes_on_rank(value, value.placement, sharding);
}

// Returns whether a value counts as traffic. Values of detail `exact` (statistics, random state) are too
// small to matter. Copies of fewer than 16 bits are casts (casts.hpp).
constexpr bool moves(const Value& value, const Sharding& sharding) {
  return value.detail == Detail::paper && !is_narrow(value.dtype) &&
         (sharding.tensor || !value.tensor_parallel_only);
}

constexpr int readers(const OpTable& table, ValueId id) {
  int count = 0;
  for (const Op& op : table.ops()) count += op.inputs.contains(id) ? 1 : 0;
  return count;
}

// Returns whether a value has a gradient: another op reads it, or it is the result. A value that is only
// saved has none.
constexpr bool has_gradient(const OpTable& table, ValueId id) {
  if (readers(table, id) > 0) return true;
  for (const Op& op : table.ops()) {
    for (const Save& save : op.saves) {
      if (save.value == id) return false;
    }
  }
  return moves(table[id], {.tensor = true});
}

constexpr Expr output_gradients(const OpTable& table, const Op& op, const Sharding& sharding) {
  Expr sum;
  for (const ValueId output : op.outputs) {
    if (has_gradient(table, output)) sum += bytes_of(table[output], sharding);
  }
  return sum;
}

constexpr Expr kept_values(const OpTable& table, const Op& op, const Sharding& sharding) {
  Expr sum;
  for (const Save& save : op.saves) {
    if (moves(table[save.value], sharding)) sum += bytes_of(table[save.value], sharding);
  }
  return sum;
}

constexpr Expr input_gradients(const OpTable& table, const Op& op, const Sharding& sharding) {
  Expr sum;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const bool passed_on = op.adds && i + 1 == op.inputs.size();
    if (!passed_on) sum += bytes_of(table[op.inputs[i]], sharding);
  }
  return sum;
}

// Returns whether the readers of an op's outputs can all add its bias, as in Megatron's bias-GeLU and
// bias-dropout-add.
constexpr bool bias_joins_reader(const OpTable& table, const Op& op) {
  for (const Op& reader : table.ops()) {
    for (const ValueId input : reader.inputs) {
      if (op.outputs.contains(input) && reader.kind != OpKind::elementwise) return false;
    }
  }
  return true;
}

// Returns whether the table states the traffic of an expert bias, which is scaled by each token's probability
// (model/routing_operators.hpp).
constexpr bool states_bias(const Op& op) {
  for (const Traffic& stated : op.traffic) {
    if (stated.name == routing::expert_bias) return true;
  }
  return false;
}

constexpr bool outputs_are_views(const OpTable& table, const Op& op) {
  return op.outputs.size() > 1 && table[op.outputs[0]].buffer != nowhere &&
         table[op.outputs[0]].buffer == table[op.outputs[1]].buffer;
}

// Returns bytes of accumulation: a 16-bit gradient is read and added to the sum over microbatches, which is
// read and written.
constexpr Expr accumulation(const Expr& weights, const TrafficOptions& options) {
  return weights * (size_of(Dtype::half) + 2 * size_of(options.gradients));
}

// Returns bytes of dequantizing weights: they are read, and written in BF16.
constexpr Expr dequantization(const Op& op, const Sharding& sharding) {
  return product_weights(op, sharding) * Monomial(op.quantized + Rational(size_of(Dtype::half)));
}

}  // namespace detail

// Returns the kernel of traffic that the table states, with `bytes` an element in `kernels` kernels.
constexpr StreamingKernel stated_kernel(const Op& op, const Traffic& stated, std::int64_t bytes, int kernels,
                                        const Sharding& sharding) {
  return {.name = stated.name,
          .bytes = of_own_tokens(stated.elements * bytes, sharding) * share(stated.placement, sharding),
          .operations = op.unfused ? 1 : kernels,
          .by_expert = stated.by_expert,
          .operators = op.unfused ? kernels - 1 : 0};
}

HEADROOM_VECTOR_CONSTEXPR StreamingKernels forward_traffic(const OpTable& table, const Op& op,
                                                           const Sharding& sharding) {
  StreamingKernels kernels;
  Expr moved;
  switch (op.kind) {
    case OpKind::linear:
      if (!op.parameters.empty() && !detail::bias_joins_reader(table, op) && !detail::states_bias(op)) {
        kernels.push_back({"bias", 2 * detail::output_gradients(table, op, sharding)});
      }
      for (const ValueId output : op.outputs) {
        if (!detail::has_gradient(table, output) && !is_narrow(table[output].dtype))
          moved += 3 * detail::bytes_of(table[output], sharding);
      }
      if (!(moved == Expr())) kernels.push_back({"cast_weights", moved});  // FP32 read, 16 bits written
      if (is_quantized(op)) kernels.push_back({"dequantize", detail::dequantization(op, sharding)});
      break;
    case OpKind::normalization:
    case OpKind::softmax:
    case OpKind::elementwise:
    case OpKind::copy:
      if (op.unfused) break;
      for (const ValueId input : op.inputs) moved += detail::bytes_of(table[input], sharding);
      for (const ValueId output : op.outputs) {
        if (detail::moves(table[output], sharding)) moved += detail::bytes_of(table[output], sharding);
      }
      kernels.push_back({op.name, moved});
      break;
    case OpKind::embedding:  // a full row of the table for every token: a partial sum over ranks
      kernels.push_back({op.name, 2 * whole_bytes(table[op.outputs[0]], sharding)});
      break;
    case OpKind::batched_matmul:
    case OpKind::mask_product:
    case OpKind::flash_attention:
    case OpKind::scan:
    case OpKind::transfer:
    case OpKind::loss: break;
  }
  for (const Traffic& extra : op.traffic) {
    if (extra.forward == 0) continue;
    kernels.push_back(stated_kernel(op, extra, extra.forward, extra.forward_kernels, sharding));
  }
  return kernels;
}

HEADROOM_VECTOR_CONSTEXPR StreamingKernels backward_traffic(const OpTable& table, const Op& op,
                                                            const Sharding& sharding,
                                                            const TrafficOptions& options) {
  StreamingKernels kernels;
  const Expr incoming = detail::output_gradients(table, op, sharding);
  const Expr kept = detail::kept_values(table, op, sharding);
  for (const Traffic& extra : op.traffic) {
    if (extra.backward == 0) continue;
    kernels.push_back(stated_kernel(op, extra, extra.backward, extra.backward_kernels, sharding));
  }
  switch (op.kind) {
    case OpKind::linear:
      if (detail::outputs_are_views(table, op)) kernels.push_back({"concatenate_gradients", 2 * incoming});
      if (is_quantized(op)) kernels.push_back({"dequantize", detail::dequantization(op, sharding)});
      if (!op.parameters.empty() && !op.frozen && !detail::states_bias(op))
        kernels.push_back({"bias_gradient", incoming, 1, false, true});
      for (const MatrixProduct& product : op.products) {
        if (adds_in_product(options) || !options.sums_gradients || op.frozen) continue;
        const Expr weights = weights_on_rank(product, sharding);
        kernels.push_back({"accumulate", detail::accumulation(weights, options), 1, false, true});
      }
      if (op.products.size() > 1) {  // each linear has a gradient of the shared input
        const int sums = static_cast<int>(op.products.size()) - 1;
        kernels.push_back({"add_gradients", 3 * sums * whole_bytes(table[op.inputs[0]], sharding), sums});
      }
      break;
    case OpKind::normalization: {
      if (op.unfused) break;
      const bool one_pass = options.norm_backward == NormBackward::one_pass;
      kernels.push_back({op.name, incoming + kept + detail::input_gradients(table, op, sharding),
                         one_pass && !op.frozen ? 2 : 1});
      if (!one_pass && !op.frozen)
        kernels.push_back({"parameter_gradients", incoming + kept, 1, false, true});
      break;
    }
    case OpKind::softmax:
    case OpKind::elementwise:
    case OpKind::copy:
      if (op.unfused) break;
      if (op.adds && op.saves.empty()) break;  // every gradient is the output's
      kernels.push_back({op.name, incoming + kept + detail::input_gradients(table, op, sharding)});
      break;
    case OpKind::embedding: {
      if (op.frozen) break;
      Expr weights;
      for (const Amount& part : op.parameters) weights += on_rank(part, sharding);
      const Expr zeroed = weights * size_of(Dtype::half);
      kernels.push_back({op.name, zeroed + 2 * whole_bytes(table[op.outputs[0]], sharding), 2, false, true});
      if (options.sums_gradients)
        kernels.push_back({"accumulate", detail::accumulation(weights, options), 1, false, true});
      break;
    }
    case OpKind::batched_matmul:
    case OpKind::mask_product:
    case OpKind::flash_attention:
    case OpKind::scan:
    case OpKind::transfer:
    case OpKind::loss: break;
  }
  for (const ValueId input : op.inputs) {
    const int gradients = detail::readers(table, input);
    if (gradients < 2) continue;
    // Charged to the first reader, whose backward pass comes last.
    bool first = false;
    for (const Op& other : table.ops()) {
      if (!other.inputs.contains(input)) continue;
      first = other.name == op.name;
      break;
    }
    if (!first) continue;
    kernels.push_back(
        {"add_gradients", 3 * (gradients - 1) * detail::bytes_of(table[input], sharding), gradients - 1});
  }
  return kernels;
}

}  // namespace headroom

// Pieces of op tables: rows of a normalization, a linear layer and a residual add.
#pragma once

#include "headroom/model/chains.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// Reasons for saving a value for the backward pass.
namespace why {
inline constexpr std::string_view weight_gradient = "the weight gradient is its product with the output's";
inline constexpr std::string_view input_gradient = "the input gradient is a function of it";
inline constexpr std::string_view other_factor = "the gradient of the other factor is a product with it";
inline constexpr std::string_view cast_weights = "the input gradient is a product with it";
inline constexpr std::string_view mask = "tells which elements were dropped";
}  // namespace why

// Returns a batched GEMM over all tokens: for each head or group, [.. x inner] [inner x outer].
constexpr MatrixProduct of_chunks(const Monomial& batch, const Monomial& inner, const Monomial& outer) {
  using namespace symbols;
  return {.batch = {batch, Placement::split},
          .rows = {s * b, Placement::whole},
          .inner = {inner, Placement::whole},
          .outer = {{outer, Placement::whole}}};
}

// Returns the 16-bit copy that a linear under autocast makes of its FP32 weights, or of a part of their rows.
constexpr Value cast_weights(const MatrixProduct& product, const Amount& outer) {
  const bool rows_whole = product.inner.placement == Placement::whole;
  return {"half-precision weights", product.inner.count * outer.count, Dtype::half,
          rows_whole ? outer.placement : product.inner.placement};
}

// Returns the traffic of `count` casts of a value between FP32 and 16 bits. Their gradients are cast back.
constexpr Traffic cast_traffic(std::string_view name, const Value& value, int count = 1) {
  constexpr std::int64_t cast = size_of(Dtype::fp32) + size_of(Dtype::half);
  return {.name = name,
          .elements = value.elements,
          .placement = value.placement,
          .forward = cast * count,
          .backward = cast * count,
          .forward_kernels = count,
          .backward_kernels = count};
}

struct OpBuilder {
  Architecture arch;
  OpTable table{};
  bool one_sequence = false;  // in a microbatch: then batch first and sequence first are the same order
  Dispatcher dispatcher = Dispatcher::alltoall;  // of tokens to experts
  bool pads_rows = false;                        // pads tokens of experts by copying them
  bool pads_to_capacity = false;                 // pads tokens of experts before dispatch

  // Adds a by-product of `op` that is saved for its backward pass.
  constexpr void keep(Op& op, const Value& value, std::string_view why) {
    const ValueId id = table.value(value);
    op.outputs.push_back(id);
    op.saves.push_back({id, why});
  }

  // Adds what an RMSNorm chain saves for `elements` elements, and its temporaries in the backward pass.
  constexpr void keep_chain(Op& op, const Monomial& elements, Placement placement,
                            Dtype input = Dtype::half) {
    const NormKernel kernel = arch.kernels.normalization.value_or(NormKernel::fused);
    const bool in_fp32 = input == Dtype::fp32 && arch.kernels.weight_copies;  // FP32 weights keep it FP32
    const Dtype unscaled = kernel == NormKernel::composite || in_fp32 ? Dtype::fp32 : Dtype::half;
    keep(op, {"fp32 input", elements, Dtype::fp32, placement}, why::input_gradient);
    keep(op, {"unscaled output", elements, unscaled, placement}, why::weight_gradient);
    op.temporaries.push_back(table.value({"fp32 gradients", 3 * elements, Dtype::fp32, placement}));
    op.unfused = true;
    op.traffic.push_back(norm_chain(kernel, op.name, elements, placement, input));
  }

  // Adds a normalization of `input`, which has `width` numbers a token. Returns its output.
  constexpr ValueId norm(std::string_view name, ValueId input, const Monomial& width = symbols::h) {
    using namespace symbols;
    const bool layer_norm = arch.normalization == Normalization::layer_norm;
    const NormKernel kernel = arch.kernels.normalization.value_or(NormKernel::fused);
    const Dtype input_dtype = table[input].dtype;

    Op op{.name = name, .kind = OpKind::normalization, .inputs = {input}};
    if (width == h) op.statistics = layer_norm ? 2 : 1;
    const Monomial weights = layer_norm && arch.norm_bias ? 2 * width : width;
    const ValueId output = table.value({"normalized", s * b * width});
    op.outputs.push_back(output);
    op.parameters = {{weights, Placement::whole}};

    if (kernel == NormKernel::fused) {
      op.saves.push_back({input, why::input_gradient});
      keep(op,
           {layer_norm ? "mean and deviation" : "deviation", (layer_norm ? 2 : 1) * s * b,
            arch.kernels.norm_statistics, Placement::boundary, Detail::exact},
           "spares a second reduction");
    } else {
      keep_chain(op, s * b * width, Placement::boundary, input_dtype);
      if (kernel == NormKernel::unfused_mean)
        keep(op, {"squares", s * b * width, Dtype::fp32}, why::input_gradient);
      keep(op, {"deviation", s * b, Dtype::fp32, Placement::boundary, Detail::exact}, why::other_factor);
      op.operators = norm_operators;
      if (kernel == NormKernel::unfused) {
        keep(op, {"divisors", 2, Dtype::fp32, Placement::whole, Detail::exact}, why::other_factor);
      }
    }
    if (input_dtype == Dtype::fp32 && !arch.kernels.weight_copies) {
      keep(op, {"fp32 weights", weights, Dtype::fp32, Placement::whole, Detail::exact},
           "half-precision weights are cast to meet an fp32 input");
    }
    table.op(op);
    return output;
  }

  // Returns the GEMM of every token with a weight matrix. Column-parallel linears split the outer extent,
  // row-parallel ones the inner. Either way a rank uses 1/t of the weights.
  [[nodiscard]] static constexpr MatrixProduct of_tokens(const Amount& inner, const OuterExtents& outer) {
    using namespace symbols;
    return {.rows = {s * b, Placement::whole}, .inner = inner, .outer = outer};
  }

  // Returns whether a normalization makes the value, which is FP32 under autocast.
  [[nodiscard]] constexpr bool comes_from_norm(ValueId value) const {
    const int producer = table[value].producer;
    return producer != nowhere &&
           table.ops()[static_cast<std::size_t>(producer)].kind == OpKind::normalization;
  }

  // Adds an op of `linears` linear layers that read the same input, and saves the input. Under autocast, each
  // saves a 16-bit copy of its own.
  constexpr void linear(std::string_view name, ValueId input, const Outputs& outputs,
                        const FixedVector<MatrixProduct, 3>& products, const FixedVector<Amount, 4>& biases,
                        int linears = 1) {
    Op op{.name = name, .kind = OpKind::linear, .region = Placement::split, .inputs = {input}};
    op.outputs = outputs;
    op.saves = {{input, why::weight_gradient}};
    op.products = products;
    op.parameters = biases;
    op.overlaps = true;
    for (const MatrixProduct& product : products) {
      if (!arch.kernels.weight_copies) continue;
      for (const Amount& outer : product.outer) {
        const Value copy = cast_weights(product, outer);
        keep(op, copy, why::cast_weights);
        op.traffic.push_back(cast_traffic("cast_weights", copy));
      }
    }
    for (int i = 1; arch.kernels.weight_copies && i < linears; ++i) {
      Value copy = table[input];
      copy.name = "cast input";
      copy.buffer = nowhere;
      keep(op, copy, why::weight_gradient);
    }
    if (arch.kernels.weight_copies && comes_from_norm(input)) {
      Traffic casts = cast_traffic("cast_input", table[input], linears);
      constexpr std::int64_t added = 3 * size_of(Dtype::fp32);  // gradients of two linears
      casts.backward += added * (linears - 1);
      casts.backward_kernels += linears - 1;
      op.traffic.push_back(casts);
    }
    table.op(op);
  }

  // Adds a linear layer whose weights every TP rank holds and applies to its own tokens.
  constexpr void repeated_linear(std::string_view name, ValueId input, const Outputs& outputs,
                                 const OuterExtents& outer, const Monomial& inner = symbols::h) {
    using namespace symbols;
    Op op{.name = name, .kind = OpKind::linear, .inputs = {input}, .outputs = outputs};
    op.saves = {{input, why::weight_gradient}};
    op.products = {
        {.rows = {s * b, Placement::boundary}, .inner = {inner, Placement::whole}, .outer = outer}};
    table.op(op);
  }

  // Returns a copy of a value in another memory order, to be made by an op.
  constexpr ValueId transposed(ValueId value) {
    Value copy = table[value];
    copy.name = "transposed copy";
    copy.buffer = nowhere;
    return table.value(copy);
  }

  // Adds the residual add, with dropout if the architecture has it. Returns the sum.
  constexpr ValueId residual(std::string_view name, ValueId branch, ValueId stream) {
    using namespace symbols;
    Op op{.name = name, .inputs = {branch, stream}, .adds = true};
    if (arch.hidden_dropout) {
      const ValueId mask = table.value({"dropout mask", s * b * h, arch.kernels.dropout_mask});
      op.outputs.push_back(mask);
      op.saves.push_back({mask, why::mask});
    }
    const ValueId sum = table.value({"residual stream", s * b * h, arch.kernels.residual_dtype});
    op.outputs.push_back(sum);
    table.op(op);
    return sum;
  }

  // Returns the bias of a row-parallel linear, which every rank adds after the reduction.
  [[nodiscard]] constexpr FixedVector<Amount, 4> row_bias() const {
    using namespace symbols;
    if (!arch.linear_bias) return {};
    return {{h, Placement::whole}};
  }
};

}  // namespace headroom

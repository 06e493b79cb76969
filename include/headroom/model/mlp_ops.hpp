// Rows of the feed-forward block between its normalization and its residual add.
#pragma once

#include "headroom/model/op_builder.hpp"

namespace headroom {

// A feed-forward block of a layer: the names of its rows and its width.
struct Feedforward {
  std::string_view up = "mlp_up";
  std::string_view activation = "activation";
  std::string_view clamp = "clamp";
  std::string_view quantize = "quantize";
  std::string_view down = "mlp_down";
  Monomial width = symbols::f;
};

// Inputs of an activation: both halves of a GEMM's output, clamped if separate operators do that before the
// activation.
struct Clamped {
  FixedVector<ValueId, 2> inputs;
  bool ahead = false;
};

constexpr Clamped clamped(OpBuilder& layer, ValueId input, std::string_view name, const Monomial& elements) {
  const Architecture& arch = layer.arch;
  const bool ahead = arch.clamped_activation && arch.kernels.clamp.value_or(Fusion::fused) == Fusion::unfused;
  if (!ahead) return {{input}};
  Op op{.name = name, .region = Placement::split, .inputs = {input}};
  op.saves = {{input, "tells which elements were clamped"}};
  const bool together = arch.kernels.activation.value_or(Fusion::fused) == Fusion::fused;
  const auto made = [&](std::string_view what, const Monomial& of) {
    op.outputs.push_back(layer.table.value({what, of, Dtype::half, Placement::split}));
  };
  if (together) {
    made("clamped gate and up", 2 * elements);
  } else {
    made("clamped gate", elements);
    made("clamped up", elements);
  }
  op.unfused = true;
  op.traffic = {clamp_chain(name, elements, Placement::split, together)};
  op.operators = clamp_operators;
  layer.table.op(op);
  Clamped result{.inputs = {}, .ahead = true};
  for (const ValueId output : op.outputs) result.inputs.push_back(output);
  return result;
}

// Adds the cast of an activation's input to FP8, which the activation then reads. A recomputed activation is
// made again from it.
constexpr ValueId quantized(OpBuilder& layer, ValueId input, std::string_view name) {
  const Value whole = layer.table[input];
  const ValueId output =
      layer.table.value({"FP8 input", whole.elements, layer.arch.kernels.activation_input, whole.placement});
  layer.table.op({.name = name,
                  .kind = OpKind::copy,
                  .region = Placement::split,
                  .inputs = {input},
                  .outputs = {output},
                  .adds = true,  // its input's gradient is its output's
                  .input_gradient = Dtype::half});
  return output;
}

// Adds an activation with `elements` output elements, one for each of the width. The same kernel multiplies
// by `factor`, if there is one: a number for each token.
constexpr ValueId activation(OpBuilder& layer, ValueId projected, const Feedforward& of,
                             const Monomial& elements, ValueId factor = nowhere) {
  using namespace symbols;
  Clamped read = clamped(layer, projected, of.clamp, elements);
  if (reads_quantized(layer.arch)) read.inputs[0] = quantized(layer, read.inputs[0], of.quantize);
  const ValueId input = read.inputs[0];
  Op op{.name = of.activation, .region = Placement::split, .inputs = {}};
  for (const ValueId each : read.inputs) op.inputs.push_back(each);
  if (reads_quantized(layer.arch)) op.input_gradient = Dtype::half;
  const ValueId output = layer.table.value({"activated", elements, Dtype::half, Placement::split});
  op.outputs = {output};
  const bool unfused = layer.arch.kernels.activation.value_or(Fusion::fused) == Fusion::unfused;
  switch (layer.arch.activation) {
    case Activation::relu: op.saves.push_back({output, "its sign is the gradient"}); break;
    case Activation::squared_relu:
      layer.keep(op, {"rectified", elements, Dtype::half, Placement::split}, why::input_gradient);
      break;
    case Activation::gelu:
      op.saves.push_back({input, why::input_gradient});
      if (unfused) {  // x/2 (1 + tanh(c x (1 + d x x))) as a chain of products, each keeping its factors
        layer.keep(op, {"tanh chain", 6 * elements, Dtype::half, Placement::split}, why::other_factor);
        layer.keep(op, {"constants", 6, Dtype::fp32, Placement::whole, Detail::exact}, why::other_factor);
      }
      break;
    case Activation::swiglu:
    case Activation::geglu:
      if (stores_narrow(layer.arch)) {
        const Value whole = layer.table[input];
        op.temporaries.push_back(layer.table.value(whole));  // it is cast back for the backward pass
        layer.keep(op, {"FP8 input", whole.elements, layer.arch.kernels.activation_input, whole.placement},
                   why::input_gradient);
      } else {
        op.saves.push_back({input, why::input_gradient});
      }
      if (unfused) {
        layer.keep(op, {"activated gate", elements, Dtype::half, Placement::split}, why::other_factor);
        if (read.ahead) {
          layer.keep(op, {"sigmoid of gate", elements, Dtype::half, Placement::split}, why::other_factor);
          layer.keep(op, {"shifted up", elements, Dtype::half, Placement::split}, why::other_factor);
        }
        op.unfused = true;
        op.traffic = {gated_chain(of.activation, elements, Placement::split, factor != nowhere, read.ahead)};
      } else if (read.ahead) {  // what is added comes from the host: torch.tensor(linear_offset, device=...)
        op.operators = {1, 0};
        op.host_waits = true;
      }
      break;
  }
  if (factor != nowhere) {
    op.inputs.push_back(factor);
    op.saves.push_back({factor, why::other_factor});
  }
  layer.table.op(op);
  return output;
}

constexpr ValueId mlp(OpBuilder& layer, ValueId input, const Feedforward& of = {}) {
  using namespace symbols;
  const bool gated = is_gated(layer.arch.activation);
  const int projections = gated ? 2 : 1;
  const ValueId up = layer.table.value(
      {gated ? "gate and up" : "up", projections * s * b * of.width, Dtype::half, Placement::split});
  FixedVector<Amount, 4> bias;
  if (layer.arch.linear_bias) bias = {{projections * of.width, Placement::split}};
  layer.linear(of.up, input, {up},
               {OpBuilder::of_tokens({h, Placement::whole}, {{projections * of.width, Placement::split}})},
               bias, projections);
  layer.table.change(layer.table.ops().size() - 1).merged = projections;

  const ValueId active = activation(layer, up, of, s * b * of.width);
  const ValueId output = layer.table.value({"mlp output", s * b * h});
  layer.linear(of.down, active, {output},
               {OpBuilder::of_tokens({of.width, Placement::split}, {{h, Placement::whole}})},
               layer.row_bias());
  return output;
}

}  // namespace headroom

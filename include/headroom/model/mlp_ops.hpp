// The rows of the feed-forward block between its normalization and its residual add.
#pragma once

#include "headroom/model/op_builder.hpp"

namespace headroom {

constexpr ValueId activation(OpBuilder& layer, ValueId input) {
  using namespace symbols;
  Op op{.name = "activation", .region = Placement::split, .inputs = {input}};
  const ValueId output = layer.table.value({"activated", s * b * f, Dtype::half, Placement::split});
  op.outputs = {output};
  const bool unfused = layer.arch.kernels.activation == Fusion::unfused;
  switch (layer.arch.activation) {
    case Activation::relu: op.saves.push_back({output, "its sign is the gradient"}); break;
    case Activation::squared_relu:
      layer.keep(op, {"rectified", s * b * f, Dtype::half, Placement::split}, why::input_gradient);
      break;
    case Activation::gelu:
      op.saves.push_back({input, why::input_gradient});
      if (unfused) {  // x/2 (1 + tanh(c x (1 + d x x))) as a chain of products, each keeping its factors
        layer.keep(op, {"tanh chain", 6 * s * b * f, Dtype::half, Placement::split}, why::other_factor);
        layer.keep(op, {"constants", 6, Dtype::fp32, Placement::whole, Detail::exact}, why::other_factor);
      }
      break;
    case Activation::swiglu:
    case Activation::geglu:
      op.saves.push_back({input, why::input_gradient});
      if (unfused)
        layer.keep(op, {"activated gate", s * b * f, Dtype::half, Placement::split}, why::other_factor);
      break;
  }
  layer.table.op(op);
  return output;
}

constexpr ValueId mlp(OpBuilder& layer, ValueId input) {
  using namespace symbols;
  const bool gated = is_gated(layer.arch.activation);
  const int projections = gated ? 2 : 1;
  const ValueId up = layer.table.value(
      {gated ? "gate and up" : "up", projections * s * b * f, Dtype::half, Placement::split});
  FixedVector<Amount, 4> bias;
  if (layer.arch.linear_bias) bias = {{projections * f, Placement::split}};
  layer.linear("mlp_up", input, {up},
               {OpBuilder::of_tokens({h, Placement::whole}, {{projections * f, Placement::split}})}, bias);

  const ValueId active = activation(layer, up);
  const ValueId output = layer.table.value({"mlp output", s * b * h});
  layer.linear("mlp_down", active, {output},
               {OpBuilder::of_tokens({f, Placement::split}, {{h, Placement::whole}})}, layer.row_bias());
  return output;
}

}  // namespace headroom

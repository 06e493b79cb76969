// Rows of a gated short convolution between its normalization and its residual add [huggingface/transformers,
// models/lfm2/modeling_lfm2.py, Lfm2ShortConv.cuda_kernels_forward]:
//
//   in_proj  input_gate  short_convolution  conv_gate  out_proj
//
// in_proj computes B, C and x. The product of B and x goes through a causal convolution, and its output is
// multiplied by C. TP ranks divide channels. CP ranks exchange tokens for channels around the convolution.
#pragma once

#include "headroom/model/op_builder.hpp"

namespace headroom {

constexpr ValueId mixer_ops(OpBuilder& layer, const ShortConv& sizes, ValueId input) {
  using namespace symbols;
  const auto value = [&](std::string_view name) {
    return layer.table.value({name, s * b * H, Dtype::half, Placement::split});
  };
  const Amount channels{H, Placement::split};
  const ValueId all = layer.table.value({"B, C and x", 3 * s * b * H, Dtype::half, Placement::split});
  layer.linear("in_proj", input, {all},
               {OpBuilder::of_tokens({h, Placement::whole}, {{3 * H, Placement::split}})}, {});
  const ValueId taken = value("B times x");
  layer.table.op({.name = "input_gate",
                  .region = Placement::split,
                  .inputs = {all},
                  .outputs = {taken},
                  .saves = {{all, why::other_factor}}});
  const ValueId convolved = value("convolved");
  constexpr std::int64_t half = size_of(Dtype::half);
  layer.table.op(
      {.name = "short_convolution",
       .region = Placement::split,
       .inputs = {taken},
       .outputs = {convolved},
       .saves = {{taken, why::input_gradient}},
       .parameters = {{sizes.conv_width * H, Placement::split}},
       .traffic = {{"convolution", s * b * H, Placement::split, 2 * half, 3 * half}},
       .exchanges = {{.axis = ParallelAxis::context, .name = Conjugate::dispatch, .value = taken},
                     {.axis = ParallelAxis::context, .name = Conjugate::combine, .value = convolved}}});
  const ValueId gated = value("gated");
  layer.table.op({.name = "conv_gate",
                  .region = Placement::split,
                  .inputs = {convolved, all},
                  .outputs = {gated},
                  .saves = {{convolved, why::other_factor}, {all, why::other_factor}}});
  const ValueId projected = layer.table.value({"mixer output", s * b * h});
  layer.linear("out_proj", gated, {projected}, {OpBuilder::of_tokens(channels, {{h, Placement::whole}})}, {});
  return projected;
}

}  // namespace headroom
